/**
 * The live line to the server: one WebSocket, opened again whenever it is lost, and a log of numbered commands, each
 * said until it is answered. What both sides say is written in docs/live-line.md.
 *
 *   line.state     'connecting'; 'open'; 'lost': tried again at `retryAt`; 'ended': for good, `words` say why
 *   line.tries     attempts in a row that brought no frame
 *   line.wasOpen   whether a frame has ever come
 */

import { say } from '../drawing/say.js';
import { decodeFrame } from './frame.js';

const LINE_VERSION = 1;
const MOST_UNDER_WAY = 48; // said and not answered; the others wait here, and follow as answers come
const MOST_WAITING = 500;
const URGENT = ['stop', 'pause']; // what ends work goes before what waits here, which is not done then
const SEEN_AFTER_MS = 500;
const BEAT_AFTER_MS = 20_000;
const ANSWER_WITHIN_MS = 10_000;
const FIRST_PAUSE_MS = 500;
const LONGEST_PAUSE_MS = 10_000;

const ENDINGS = {
  1009: say('live_line.too_much'),
  4000: say('live_line.unreadable'),
  4001: say('live_line.version'),
  4002: say('live_line.out_of_order'),
  4003: say('live_line.taken_over'),
  4004: say('live_line.too_many'),
};
const FOR_PEOPLE = [4001, 4003, 4004]; // the server's own reason is better than what stands here

/** Where the live line is: beside the folder that Streamlit's own scripts come from, whatever stands before it. */
export function lineAddress() {
  const script = document.querySelector('script[src*="/static/js/"]')?.src;
  const base = script ? script.slice(0, script.lastIndexOf('static/js/')) : new URL('./', location.href).href;
  return `${base.replace(/^http/, 'ws')}live-line`;
}

function randomName() {
  return Array.from(crypto.getRandomValues(new Uint32Array(4)), (n) => n.toString(36)).join('');
}

export class LiveLine {
  state = 'connecting';
  tries = 0;
  retryAt = 0;
  wasOpen = false;
  words = '';
  #greeting;
  #onFrame;
  #onState;
  #owner = null;
  #socket = null;
  #mount = randomName();
  #log = [];
  #waiting = new Map(); // number of a command -> how its promise is settled
  #next = 1;
  #said = 0; // commands up to this number were said on this connection
  #ack = 0;
  #seenSaid = 0;
  #frame = 0;
  #drawnSaid = 0;
  #beats = 0;
  #timers = { retry: 0, silence: 0, seen: 0 };

  /**
   * @param {() => {query: string, session: object|null, have: object|null}} greeting what an opening says of the page
   * @param {(header: object, hydrate: (value: any) => any) => void} onFrame before its answers are handed out
   * @param {() => void} onState
   */
  constructor(greeting, onFrame, onState) {
    this.address = lineAddress();
    this.#greeting = greeting;
    this.#onFrame = onFrame;
    this.#onState = onState;
    addEventListener('online', () => this.#wake());
    document.addEventListener('visibilitychange', () => document.hidden || this.#wake());
  }

  /** Speak in this owner's name from now on. What was not answered yet is said again. */
  open(owner) {
    if (owner === this.#owner) return;
    this.#owner = owner;
    if (this.state === 'ended') this.#beginAnew();
    this.retry();
  }

  /** Connect now, whatever there was. */
  retry() {
    this.tries = 0;
    this.#connect();
    this.#become('connecting');
  }

  /** What the server says fits nothing that we hold: hear all of it again. */
  lose() {
    this.#drop();
    const pause = Math.min(LONGEST_PAUSE_MS, FIRST_PAUSE_MS * 2 ** this.tries) * (0.75 + Math.random() / 2);
    this.tries += 1;
    this.retryAt = Date.now() + pause;
    this.#timers.retry = setTimeout(() => this.#connect(), pause);
    this.#become('lost');
  }

  end(words) {
    this.#drop();
    this.words = words;
    this.#log = [];
    for (const { reject } of this.#waiting.values()) reject({ kind: 'Ended', message: words });
    this.#waiting.clear();
    this.#become('ended');
  }

  /** All commands up to this number are done. */
  get ack() {
    return this.#ack;
  }

  get idle() {
    return this.#log.length === 0;
  }

  /** How many commands of this kind are not done. */
  pending(op) {
    return this.#log.filter((command) => command.op === op).length;
  }

  /** @returns {Promise<any>} the answer; rejects with {kind, message} */
  send(op, args) {
    if (this.state === 'ended') return Promise.reject({ kind: 'Ended', message: this.words });
    if (URGENT.includes(op)) this.#giveUpUnsaid();
    if (this.#log.length >= MOST_WAITING) {
      const message = say('live_line.waiting', { count: this.#log.length, what: op === 'step' ? 'steps' : 'commands' });
      return Promise.reject({ kind: 'TooMany', message });
    }
    const command = { n: this.#next++, op, args };
    this.#log.push(command);
    const answer = new Promise((resolve, reject) => this.#waiting.set(command.n, { resolve, reject }));
    this.#sayNext(URGENT.includes(op));
    return answer;
  }

  /** Say what has its turn: no more than the server takes before it has answered. */
  #sayNext(isUrgent = false) {
    const turn = isUrgent ? this.#log : this.#log.slice(0, MOST_UNDER_WAY);
    if (this.#socket?.readyState !== WebSocket.OPEN) return;
    for (const command of turn.filter(({ n }) => n > this.#said)) {
      this.#said = command.n;
      this.#say({ ...command, ...this.#news() });
    }
  }

  /** What the server has not heard of is not done; their numbers are free again. */
  #giveUpUnsaid() {
    const unsaid = this.#log.filter(({ n }) => n > this.#said);
    if (this.#log.length - unsaid.length < MOST_UNDER_WAY) return; // they wait for a connection, not for their turn
    this.#log = this.#log.filter(({ n }) => n <= this.#said);
    this.#next = this.#said + 1;
    for (const { n } of unsaid) {
      this.#waiting.get(n).reject({ kind: 'Stopped', message: say('live_line.stopped') });
      this.#waiting.delete(n);
    }
  }

  /** The newest frame is on screen. */
  drawn() {
    if (this.#frame <= this.#drawnSaid) return;
    this.#drawnSaid = this.#frame;
    this.#say({ drawn: this.#frame });
  }

  /** What is looked at here, for whoever follows. */
  look(look) {
    this.#say({ look });
  }

  #beginAnew() {
    this.#mount = randomName();
    this.#next = 1;
    this.#ack = this.#seenSaid = this.#said = 0;
  }

  #connect() {
    this.#drop();
    this.#frame = this.#drawnSaid = 0;
    const socket = (this.#socket = new WebSocket(this.address));
    socket.binaryType = 'arraybuffer';
    socket.onopen = () => this.#greet();
    socket.onmessage = ({ data }) => this.#receive(new Uint8Array(data));
    socket.onclose = ({ code, reason }) => this.#closed(code, reason);
    this.#listen();
  }

  #greet() {
    const commands = this.#log.slice(0, MOST_UNDER_WAY);
    const [owner, mount, seen] = [this.#owner, this.#mount, this.#ack];
    this.#seenSaid = seen;
    this.#said = commands.at(-1)?.n ?? this.#next - 1;
    this.#say({ loupe: LINE_VERSION, owner, mount, ...this.#greeting(), seen, commands });
  }

  #say(message) {
    if (this.#socket?.readyState === WebSocket.OPEN) this.#socket.send(JSON.stringify(message));
  }

  /** Let go of the socket; nothing that it still brings is heard. */
  #drop() {
    for (const name of Object.keys(this.#timers)) clearTimeout(this.#timers[name]);
    if (!this.#socket) return;
    Object.assign(this.#socket, { onopen: null, onmessage: null, onclose: null });
    this.#socket.close();
    this.#socket = null;
  }

  #closed(code, reason) {
    if (!ENDINGS[code]) return this.lose();
    if (FOR_PEOPLE.includes(code)) return this.end(reason || ENDINGS[code]);
    return this.end(reason ? `${ENDINGS[code]} (${reason})` : ENDINGS[code]);
  }

  #become(state) {
    this.state = state;
    this.#onState();
  }

  #receive(bytes) {
    const { header, hydrate } = decodeFrame(bytes);
    this.#frame = header.frame;
    if (header.frame === 1) this.#drawnSaid = 0; // all of it again
    this.#listen();
    if (this.state !== 'open') {
      this.tries = 0;
      this.wasOpen = true;
      this.#become('open');
    }
    this.#onFrame(header, hydrate);
    this.#takeAnswers(header, hydrate);
  }

  #takeAnswers(header, hydrate) {
    this.#ack = Math.max(this.#ack, header.ack ?? 0);
    this.#log = this.#log.filter((command) => command.n > this.#ack);
    this.#sayNext();
    for (const answer of header.answers ?? []) {
      const waiting = this.#waiting.get(answer.n);
      if (!waiting) continue; // told again
      this.#waiting.delete(answer.n);
      if (answer.ok) waiting.resolve(hydrate(answer.value ?? null));
      else waiting.reject(answer.error);
    }
    for (const [n, waiting] of this.#waiting) {
      if (n > this.#ack) continue;
      this.#waiting.delete(n);
      waiting.reject({ kind: 'AnswerLost', message: say('live_line.no_answer') });
    }
    if (this.#ack === this.#seenSaid) return;
    clearTimeout(this.#timers.seen);
    this.#timers.seen = setTimeout(() => this.#say(this.#news()), SEEN_AFTER_MS);
  }

  /** What the server does not know yet of the answers that have arrived. */
  #news() {
    clearTimeout(this.#timers.seen);
    if (this.#ack === this.#seenSaid) return {};
    this.#seenSaid = this.#ack;
    return { seen: this.#ack };
  }

  /** Something was heard. After a while without, ask whether anybody is there. */
  #listen() {
    clearTimeout(this.#timers.silence);
    this.#timers.silence = setTimeout(() => this.#beat(), BEAT_AFTER_MS);
  }

  #beat() {
    if (this.#socket.readyState !== WebSocket.OPEN) return this.lose(); // a handshake that never ends
    clearTimeout(this.#timers.silence);
    this.#timers.silence = setTimeout(() => this.lose(), ANSWER_WITHIN_MS);
    return this.#say({ beat: ++this.#beats });
  }

  /** The network or the person is back: do not wait for the clock. */
  #wake() {
    if (this.state === 'lost' && !this.#socket) this.#connect();
    else if (this.state === 'open') this.#beat();
  }
}
