/**
 * What the browser knows: model, session, tokens, recorded steps, and what is being looked at.
 *
 * One store on window, which outlives a visit to a lab. Looking (select, params) never talks to Python; only `send` does.
 * A step is merged by epoch. When the engine's history is cut, its epoch changes; what the
 * browser holds is void then, but for the first steps of the history that the frame says it keeps.
 *
 *   store.model, .session, .settings, .tokens, .steps, .pieces (Map by id), .presets, .examples, .link, .busy
 *   store.limits = {models, share, prompt_characters, new_tokens, play_rate}   what this server grants; 0 is no limit
 *   store.shared                               whether the host of the class may read this tab's text
 *   store.undo = {number, act, steps} what Undo would bring back; null: nothing, undefined: not known yet
 *   store.machine = {bytes_per_s, flops_per_s, ...} what this machine was measured to do, or null
 *   store.how                                  how the session began on this connection; null: it is on its way
 *   store.recording = {kind, model, made}      what is shown was recorded; null: it is a run of this page's own.
 *                                              'first': a step, until there is such a run; 'opened': a file, until it is closed
 *   store.following = {lead, look, left}       the class that is followed (following.js)
 *   store.leading = {code, followers, behind}  how this page leads a class; null: it does not
 *   store.hasBegun                             whether the page has decided what to begin with
 *   store.play = {on, speed, error}            whether the server asks for step after step
 *   store.loading, .failed, .place             why there is no session yet, or null
 *   store.line                                 the connection (live_line.js): state, what is pending
 *   store.lesson = {id, scene}                 the lesson that is open, over visits to other pages; null: none
 *   store.sel = {step, layer, head, follow}    follow: the selection moves with the newest step
 *   store.params                               the sampler settings being tried out, or null
 *   store.send(op, args) -> Promise of the answer; rejects with {kind, message}
 *   event 'change', detail: Set of 'model' 'session' 'tokens' 'steps' 'select' 'params' 'machine' 'busy' 'play' 'line' 'answers'
 *                           'theme' 'frame' 'notice' 'lesson' 'attention' (weights that were asked for have come)
 *
 * A record may come again as another object (its stop rules were checked anew): records are compared by `keyOf`. Arrays
 * arrive as Plane: step.planes.kv_norms.data is a typed array, .shape its row-major shape.
 */

import { Following } from './following.js';
import { LiveLine } from './live_line.js';
import { RECORDED_PARTS, firstStep } from './recording.js';
import { TabMemory } from './tab_memory.js';
import { wholeSession } from './whole_session.js';
import { say } from '../drawing/say.js';

/** What a frame names is taken over as it is; the change it makes, where a part listens for one. */
const TAKEN_OVER = {
  presets: '', examples: '', limits: '', settings: '', shared: '', undo: '', how: '', link: 'session', machine: 'machine',
  busy: 'busy', play: 'play', leading: 'lead', loading: 'line', failed: 'line', place: 'line',
};
const UNREADABLE = ['BadCommand', 'InvalidSettings']; // what the tab remembers is of no use, now or at the next reload
const QUIET = { leading: null, busy: null, loading: null, failed: null, place: null, how: null, play: { on: false, speed: null, error: null } };

/** What may be asked for while a recording is shown; all else is about a run. */
const WHILE_RECORDED = { first: ['prefill', 'stop', 'lesson', 'lessons', 'lesson_run', 'go_live'], opened: ['stop', 'go_live'] };
const NOT_NOW = { first: say('first.not_yet'), opened: say('recording.not_here') };
const HEARD_WHILE_OPEN = ['limits', 'busy', 'loading', 'failed', 'place', 'how'];
const NOTHING_SELECTED = { step: -1, layer: 0, head: 0, follow: true };

export class Store extends EventTarget {
  model = null;
  session = null;
  tokens = [];
  steps = [];
  pieces = new Map();
  presets = {};
  examples = [];
  settings = null; // {sampling, stop, seed} for the next token, also before there is a session
  link = null;
  limits = { models: true, share: false, prompt_characters: 0, new_tokens: 0, play_rate: 0 };
  shared = false; // whether the host of the class may read this tab's text
  machine = null;
  undo = undefined;
  notice = ''; // why what the tab remembered or a link asked for could not be had
  sel = { ...NOTHING_SELECTED };
  params = null;
  lesson = null;
  epoch = -1;
  following = new Following();
  recording = null;
  hasBegun = false;
  #arrived = null; // the model that runs here, while another's step is shown
  #hasNone = false; // the server has no session for us, or, until it says `how`, none yet
  #wanted; // selection a link asked for, until its step has come
  #reported = '';

  /** @param {object} [offline] in place of the line and of the tab's memory, where there is no server */
  constructor(offline) {
    super();
    Object.assign(this, QUIET);
    this.memory = offline?.memory ?? new TabMemory();
    this.#wanted = this.memory.wantedSelection();
    this.line = offline?.line ?? new LiveLine(
      () => ({ ...this.memory.greeting(), have: this.hasRun ? { epoch: this.epoch, steps: this.steps.length } : null }),
      (header, hydrate) => (this.isOpened ? this.#overhear(header) : this.#receive(header, hydrate)),
      () => this.#lineChanged(),
    );
  }

  /** The Step page is shown again: its address says what is on screen. */
  show() {
    this.memory.show();
    this.#keep();
  }

  /** @returns {Promise<any>} */
  send(op, args = {}) {
    if (this.following.lead) return Promise.reject({ kind: 'Follows', message: say('follow.not_yours') });
    const { kind } = this.recording ?? {};
    if (kind && !WHILE_RECORDED[kind].includes(op)) return Promise.reject({ kind: 'Recorded', message: NOT_NOW[kind] });
    const answer = this.line.send(op, args);
    this.emit(new Set(['busy']));
    return answer;
  }

  /** Called once a change has reached the screen: while it plays, the server waits for that. */
  drawn() {
    if (this.play.on || this.following.lead) this.line.drawn();
  }

  #lineChanged() {
    if (this.line.state !== 'open') Object.assign(this, { busy: null, play: QUIET.play });
    this.emit(new Set(['line', 'busy', 'play']));
  }

  /** Whatever is looked at now, the next step that comes will be shown. */
  follow() {
    this.sel = { ...this.sel, follow: true };
  }

  /** Whether there is a run of this page's own. */
  get hasRun() {
    return this.steps.length > 0 && !this.recording && !this.following.lead;
  }

  /** Whether a recording is open that somebody chose to look at. */
  get isOpened() {
    return this.recording?.kind === 'opened';
  }

  /** Show the recorded step, where there is nothing else to look at yet. */
  showRecording() {
    if (this.model || this.how) return;
    this.#show('first', firstStep());
  }

  /** Look at a recording from its first step on. The run of this page waits on the server until it is closed. */
  openRecording(recorded) {
    const own = this.recording ? this.#arrived : this.model;
    this.#forget();
    this.#show('opened', recorded);
    this.#arrived = own;
    this.select({ step: 0 });
  }

  /** Back to the run of this page: all of it is heard again. */
  closeRecording() {
    if (!this.isOpened) return;
    this.#forget();
    this.recording = null;
    this.emit(new Set(['session', 'tokens', 'steps', 'model', 'select']));
    this.line.retry();
  }

  endRecording() {
    const changes = new Set();
    this.#endRecording(changes);
    this.emit(changes);
  }

  #show(kind, { header, hydrate }) {
    this.recording = { kind, model: header.model.name, made: header.made };
    this.#receive(Object.fromEntries(RECORDED_PARTS.filter((name) => name in header).map((name) => [name, header[name]])), hydrate);
  }

  #forget() {
    Object.assign(this, { model: null, session: null, tokens: [], steps: [], epoch: -1, params: null, sel: { ...NOTHING_SELECTED } });
  }

  #endRecording(changes) {
    if (this.recording?.kind !== 'first') return;
    const arrived = this.#arrived;
    if (arrived?.name !== this.recording.model) this.model = null; // layer and head were chosen for another
    this.recording = this.#arrived = null;
    this.#loseSession(changes);
    this.#takeModel({ model: arrived }, changes.add('model'));
  }

  /** What a frame says beside the run, while a recording is looked at. */
  #overhear(header) {
    const news = header.frame === 1 ? { ...QUIET, ...header } : header;
    for (const name of HEARD_WHILE_OPEN) if (name in news) this[name] = news[name];
    this.emit(new Set(['frame', 'busy', 'line']));
  }

  get selected() {
    return this.steps[this.sel.step] ?? null;
  }

  /** Names a record: run, step and row of logits. Another object with the same name shows the same. */
  keyOf(step) {
    return step ? [this.session?.sid, this.session?.branch, step.index, step.kv_len, step.log_sum_exp].join('/') : '';
  }

  get newest() {
    return this.steps.length - 1;
  }

  /** Number of prompt tokens; the token drawn in step s stands at position promptLength + s. */
  get promptLength() {
    return this.steps[0]?.input_ids.length ?? this.tokens.length;
  }

  /** Take a frame in. The first one of a connection says all that is out of the ordinary, a later one what has changed. */
  #receive(header, hydrate) {
    const isFirst = header.frame === 1;
    const news = isFirst ? { ...QUIET, ...header } : header;
    if (isFirst) this.#hasNone = false;
    const changes = new Set(['frame']);
    this.following.take(header, this, changes);
    for (const [name, change] of Object.entries(TAKEN_OVER)) {
      if (!(name in news)) continue;
      this[name] = news[name];
      if (change) changes.add(change);
    }
    if (this.how) this.undo ??= null; // known: nothing
    if (header.notice) this.#takeNotice(header.notice, changes);
    for (const [id, piece] of Object.entries(header.pieces ?? {})) this.pieces.set(Number(id), piece);
    this.#takeModel(header, changes);
    this.#takeSession(header, hydrate, changes);
    if (header.answers?.length) changes.add('answers');
    if (header.attention_of) this.#takeAttention(header.attention_of, hydrate, changes);
    this.#keep();
    this.emit(changes);
  }

  /** Attention of an older step that the leader looks at. */
  #takeAttention({ step, planes }, hydrate, changes) {
    if (!this.steps[step]) return;
    this.steps = this.steps.with(step, Following.withAttention(this.steps[step], hydrate(planes)));
    changes.add('steps').add('attention');
  }

  /** A follower's answer to the leader's question. @returns {Promise<any>} */
  answerClass(answer) {
    return this.line.send('answer', { answer });
  }

  /** Stop following, and go on with a copy of the run on screen. */
  leaveClass() {
    const { code, ended } = this.following.lead;
    this.memory.own(this.session?.recipe ?? null);
    this.following.remember(ended ? '' : code);
    Object.assign(this.following, { lead: null, look: null, question: null });
    this.#forget();
    this.how = null;
    this.emit(new Set(['session', 'tokens', 'steps', 'model', 'select', 'follow']));
    this.line.retry();
  }

  #takeNotice({ kind, message }, changes) {
    if (UNREADABLE.includes(kind)) this.memory.forget();
    this.notice = message;
    changes.add('notice');
  }

  #keep() {
    if (this.recording || this.following.lead) return;
    this.memory.keep(this.session, this.sel, this.newest, Boolean(this.settings?.solo));
  }

  #takeModel(header, changes) {
    if (this.recording && this.model) return void (this.#arrived = header.model ?? this.#arrived);
    if (!header.model || JSON.stringify(header.model) === JSON.stringify(this.model)) return;
    if (!this.model) this.sel = { ...this.sel, layer: Math.floor(header.model.num_layers / 3) }; // first layers look alike
    this.model = header.model;
    this.sel = { ...this.sel, ...this.#clamped(this.sel) };
    changes.add('model').add('select');
  }

  #takeSession(header, hydrate, changes) {
    if ('session' in header) this.#hasNone = header.session === null;
    if (this.#hasNone) return !this.recording && this.how && ('session' in header || 'how' in header) && this.#loseSession(changes);
    if (header.session) {
      if (this.session) this.#endRecording(changes);
      if (header.session.sid !== this.session?.sid) this.params = null;
      this.session = wholeSession(header.session, this.session);
      changes.add('session');
    }
    if (!this.session || !this.#mergeSteps(header, hydrate, changes) || !header.tokens) return undefined;
    this.tokens = [...this.tokens.slice(0, header.tokens_from ?? 0), ...header.tokens];
    for (const token of header.tokens) if (!this.pieces.has(token.id)) this.pieces.set(token.id, token);
    return changes.add('tokens');
  }

  #loseSession(changes) {
    if (this.session && this.line.pending('reset')) this.memory.forget();
    Object.assign(this, { session: null, tokens: [], epoch: -1, params: null });
    this.#setSteps([], changes.add('session').add('tokens'));
  }

  /** @returns {boolean} false where the frame goes on from something this tab does not hold: all of it is asked for */
  #mergeSteps(header, hydrate, changes) {
    const { epoch } = this.session;
    const from = header.steps_from ?? (epoch === this.epoch ? this.steps.length : 0);
    const held = epoch === this.epoch ? this.steps : header.keeps === this.epoch ? this.steps.slice(0, from) : [];
    const isNew = epoch !== this.epoch;
    this.epoch = epoch;
    if (from > held.length || (header.tokens_from ?? 0) > this.tokens.length) {
      this.#setSteps([], changes);
      this.line.lose();
      return false;
    }
    const fresh = (header.steps ?? []).map((step) => ({ ...step, planes: hydrate(step.planes ?? {}) }));
    if (fresh.length || isNew || from < held.length) this.#setSteps([...held.slice(0, from), ...fresh], changes);
    return true;
  }

  #setSteps(steps, changes) {
    this.steps = steps;
    changes.add('steps').add('select');
    if (this.#wanted && !this.recording && (this.#wanted.step ?? 0) < steps.length) {
      const wanted = this.#wanted;
      this.#wanted = null;
      this.sel = { ...this.sel, ...wanted, follow: wanted.step === undefined || wanted.step === this.newest };
    }
    if (this.sel.follow || this.sel.step >= this.newest) this.sel = { ...this.sel, step: this.newest, follow: true };
    this.sel = { ...this.sel, ...this.#clamped(this.sel) };
  }

  #clamped({ layer, head }) {
    if (!this.model) return { layer, head };
    const within = (value, count) => Math.max(0, Math.min(value, count - 1));
    return { layer: within(layer, this.model.num_layers), head: within(head, this.model.num_heads) };
  }

  /** Look at a step, a layer, a head. Looking at the newest step means following again. */
  select({ step = this.sel.step, layer = this.sel.layer, head = this.sel.head }) {
    const bounded = Math.max(this.steps.length ? 0 : -1, Math.min(step, this.newest));
    const next = { step: bounded, ...this.#clamped({ layer, head }), follow: bounded === this.newest };
    const same = Object.keys(next).every((key) => next[key] === this.sel[key]);
    if (same) return;
    this.sel = next;
    this.emit(new Set(['select']));
    this.#settle();
  }

  setParams(params) {
    this.params = params;
    this.emit(new Set(['params']));
  }

  emit(changes) {
    if (changes.size) this.dispatchEvent(new CustomEvent('change', { detail: changes }));
  }

  /** Half a second after the last change of layer or head, tell Python, so that the link carries it. */
  #settle() {
    this.#keep();
    clearTimeout(this.settling);
    this.settling = setTimeout(() => {
      const { step, layer, head } = this.sel;
      const report = `${layer}/${head}`;
      if (!this.session || this.recording || this.following.lead || this.line.state !== 'open' || report === this.#reported) return;
      this.#reported = report;
      this.send('select', { step, layer, head }).catch(() => {});
    }, 500);
  }
}

/** The one store of this window. One that came with scripts of another age ends with them. */
export function theStore() {
  if (!(window.__loupe instanceof Store)) {
    window.__loupe?.line.end(say('store.renewed'));
    window.__loupe = new Store();
  }
  return window.__loupe;
}
