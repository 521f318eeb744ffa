/**
 * The line to Python: a log of numbered commands, sent again until each is acknowledged.
 *
 * Streamlit keeps only the newest value of a state, so values can be skipped but a log cannot: every value carries
 * all commands that Python has not acknowledged. While a command is still running,
 * Python cannot call us. We ask again, once per drawn frame, until it is done.
 *
 * What the server did not get to before the page was left, or before it was restarted, is not thrown away: `takeLeft`.
 */

const RESEND_AFTER_MS = 4000;

export class Wire {
  #have;
  #setStateValue = null;
  #mount = '';
  #log = [];
  #waiting = new Map();
  #left = []; // commands that were never acknowledged, or told that their tab is gone
  #next = 1;
  #polls = 0;
  #ack = 0;
  #queued = false;
  #watchdog = 0;

  /** @param {() => {epoch: number, steps: number}} have what the browser holds already */
  constructor(have) {
    this.#have = have;
  }

  /** @returns the name of the page instance that speaks from now on */
  mount(setStateValue) {
    for (const { reject } of this.#waiting.values()) reject({ kind: 'Unmounted', message: 'The page was closed.' });
    this.#waiting.clear();
    this.#leave();
    this.#ack = 0;
    this.#next = 1;
    this.#mount = Array.from(crypto.getRandomValues(new Uint32Array(2)), (n) => n.toString(36)).join('');
    this.#setStateValue = setStateValue;
    return this.#mount;
  }

  /** The page was left: say nothing more in its name, for Python no longer listens there. */
  unmount(name) {
    if (name !== this.#mount) return; // another instance speaks already
    clearTimeout(this.#watchdog);
    this.#setStateValue = null;
    this.#leave();
  }

  #leave() {
    this.#left.push(...this.#log.map(({ n, ...command }) => command));
    this.#log = [];
  }

  /** Commands that came to nothing, oldest first: {op, args, settle}; asked for once. */
  takeLeft() {
    const left = this.#left.map(({ op, settle, ...args }) => ({ op, args, settle }));
    this.#left = [];
    return left;
  }

  /** Streamlit hands a new function at every call of the component. */
  refresh(setStateValue) {
    this.#setStateValue = setStateValue;
  }

  get ack() {
    return this.#ack;
  }

  isMine(header) {
    return header.mount === this.#mount;
  }

  /** How many commands of this kind Python has not acknowledged. */
  pending(op) {
    return this.#log.filter((command) => command.op === op).length;
  }

  get idle() {
    return this.#log.length === 0;
  }

  send(op, args) {
    const n = this.#next++;
    this.#log.push({ n, op, ...args });
    this.#flushSoon();
    return new Promise((resolve, reject) => this.#waiting.set(n, { resolve, reject }));
  }

  poll() {
    this.#polls += 1;
    this.#flushSoon();
  }

  /** Take acknowledgement and answers out of a frame; a frame for an older page instance is not ours. */
  receive(header, hydrate) {
    if (!this.isMine(header)) return;
    this.#ack = Math.max(this.#ack, header.ack ?? 0);
    const acknowledged = new Map(this.#log.map((command) => [command.n, command]));
    this.#log = this.#log.filter((command) => command.n > this.#ack);
    this.#watch();
    for (const answer of header.answers ?? []) {
      const waiting = this.#waiting.get(answer.n);
      if (!waiting) continue;
      this.#waiting.delete(answer.n);
      const { n, ...command } = acknowledged.get(answer.n) ?? {};
      if (answer.error?.kind === 'Forgotten' && command.op) this.#left.push({ ...command, settle: waiting });
      else if (answer.ok) waiting.resolve(hydrate(answer.value ?? null));
      else waiting.reject(answer.error);
    }
    for (const [n, waiting] of this.#waiting) {
      if (n > this.#ack) continue;
      this.#waiting.delete(n);
      waiting.reject({ kind: 'AnswerLost', message: 'The answer did not arrive. Please ask again.' });
    }
  }

  /** Never during the component's own call: Streamlit drops what is set then. */
  #flushSoon() {
    if (this.#queued) return;
    this.#queued = true;
    queueMicrotask(() => {
      this.#queued = false;
      this.#setStateValue?.('wire', {
        mount: this.#mount,
        have: this.#have(),
        seen: this.#ack,
        poll: this.#polls,
        cmds: this.#log,
      });
      this.#watch();
    });
  }

  /** A lost connection swallows values: while commands are open, say them again now and then. */
  #watch() {
    clearTimeout(this.#watchdog);
    if (!this.idle) this.#watchdog = setTimeout(() => this.poll(), RESEND_AFTER_MS);
  }
}
