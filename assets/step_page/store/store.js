/**
 * What the browser knows: model, session, tokens, recorded steps, and what is being looked at.
 *
 * One store on window, shared by every component. Looking (select, params) never talks to Python; only `send` does.
 * A step is merged by epoch. When the engine's history is cut, its epoch changes; what the
 * browser holds is void then, but for the first steps of the history that the frame says it keeps.
 *
 *   store.model, .session, .settings, .tokens, .steps, .pieces (Map by id), .presets, .examples, .link, .busy
 *   store.limits = {models, share, prompt_characters, new_tokens, play_rate}   what this server grants; 0 is no limit
 *   store.shared                               whether the host of the class may read this tab's text
 *   store.undo = {number, act, steps} what Undo would bring back; null: nothing, undefined: not known yet
 *   store.machine = {bytes_per_s, flops_per_s, ...} what this machine was measured to do, or null
 *   store.sel = {step, layer, head, follow}    follow: the selection moves with the newest step
 *   store.params                               the sampler settings being tried out, or null
 *   store.send(op, args) -> Promise of the answer; rejects with {kind, message}
 *   event 'change', detail: Set of 'model' 'session' 'tokens' 'steps' 'select' 'params' 'machine' 'busy' 'answers' 'theme' 'frame' 'notice'
 *   event 'drawn' after a change is on screen
 *
 * A record may come again as another object (its stop rules were checked anew): records are compared by `keyOf`.
 *
 * Arrays arrive as Plane: step.planes.kv_norms.data is a typed array, .shape its row-major shape.
 */

import { decodeFrame } from './frame.js';
import { Wire } from './wire.js';
import { TabMemory } from './tab_memory.js';
import { formatPlural } from '../drawing/format.js';

const DONE_AGAIN = ['prefill', 'step', 'force', 'rewind', 'fork', 'switch', 'undo', 'reset', 'settings', 'preset', 'model'];
const UNREADABLE = ['BadCommand', 'InvalidSettings']; // what the tab kept is of no use

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
  busy = null;
  undo = undefined;
  notice = ''; // why the tab's old session could not be had back
  sel = { ...NOTHING_SELECTED };
  params = null;
  epoch = -1;
  #lastBytes = null;
  #wanted = null; // selection a link asked for, until its step has come
  #reported = '';
  #pollDue = false;

  constructor() {
    super();
    this.memory = new TabMemory();
    this.wire = new Wire(() => ({ epoch: this.epoch, steps: this.steps.length }));
  }

  /**
   * A new page instance: forget what the last one showed, say hello with what the tab remembers.
   * @returns the instance's name, for `unmount`
   */
  mount(setStateValue) {
    this.stepsWhenLeft = this.steps.length;
    Object.assign(this, { session: null, tokens: [], steps: [], busy: null, undo: undefined, params: null, epoch: -1 });
    this.sel = { ...NOTHING_SELECTED };
    this.#lastBytes = null;
    this.#wanted = this.memory.wantedSelection();
    const name = this.wire.mount(setStateValue);
    this.hello();
    return name;
  }

  /** The page was left for another one of the app. */
  unmount(name) {
    clearTimeout(this.settling);
    this.wire.unmount(name);
  }

  hello() {
    const steps = this.steps.length || this.stepsWhenLeft;
    this.send('hello', this.memory.greeting()).then(
      ({ how }) => this.#goOn(how, steps),
      (error) => {
        if (error.kind === 'Unmounted') return; // left again before the answer: the run is as it was
        if (UNREADABLE.includes(error.kind)) this.memory.forget();
        for (const { settle } of this.wire.takeLeft()) settle?.reject(error);
        this.#tell(error.message);
      },
    );
  }

  /**
   * What waited when the page was left or the server was restarted. A run that was rebuilt is as this tab last saw it, so
   * none of it was done, and it is done now. One that went on may have had some of it: that is only said.
   */
  #goOn(how, stepsBefore) {
    const all = this.wire.takeLeft();
    const left = all.filter(({ op, args }) => DONE_AGAIN.includes(op) && !args.auto);
    const again = how === 'rebuilt' ? left : [];
    for (const { op, args, settle } of again) {
      this.send(op, args).then((value) => settle?.resolve(value), (error) => (settle ? settle.reject(error) : this.#tell(error.message)));
    }
    const lost = { kind: 'Lost', message: 'The server was restarted before it got to this. Please ask again.' };
    for (const each of all) if (!again.includes(each)) each.settle?.reject(lost);
    if (how === 'rebuilt') return;
    const pressed = left.filter(({ op }) => op === 'step').length;
    const missing = pressed - Math.max(0, this.steps.length - stepsBefore);
    if (missing > 0) this.#tell(`${formatPlural(missing, 'step')} asked for before this page was left ${missing > 1 ? 'were' : 'was'} not made. Press Step again.`);
  }

  #tell(words) {
    this.notice = words;
    this.emit(new Set(['notice']));
  }

  /** @returns {Promise<any>} */
  send(op, args = {}) {
    const answer = this.wire.send(op, args);
    this.emit(new Set(['busy']));
    return answer;
  }

  /** Called once a change has reached the screen: the player may ask for the next step, the wire how far a long call is. */
  drawn() {
    this.dispatchEvent(new Event('drawn'));
    if (this.#pollDue) this.wire.poll();
    this.#pollDue = false;
  }

  /** Whatever is looked at now, the next step that comes will be shown. */
  follow() {
    this.sel = { ...this.sel, follow: true };
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

  /** Take a frame in. The same bytes again (a theme change) are ignored. */
  receive(bytes) {
    if (!(bytes instanceof Uint8Array) || bytes === this.#lastBytes) return;
    this.#lastBytes = bytes;
    const { header, hydrate } = decodeFrame(bytes);
    const changes = new Set(['frame']);
    this.#takeModel(header, changes);
    this.#takeSession(header, hydrate, changes);
    this.shared = Boolean(header.shared);
    this.undo = header.undo ?? null;
    if (JSON.stringify(header.busy ?? null) !== JSON.stringify(this.busy)) changes.add('busy');
    this.busy = header.busy ?? null;
    this.#pollDue = Boolean(this.busy) && this.wire.isMine(header);
    if (header.answers?.length) changes.add('answers');
    this.wire.receive(header, hydrate);
    this.memory.keep(this.session, this.sel, this.newest, Boolean(this.settings?.solo));
    this.emit(changes);
  }

  #takeModel(header, changes) {
    for (const name of ['presets', 'examples', 'limits', 'link', 'settings']) if (header[name]) this[name] = header[name];
    if (JSON.stringify(header.machine ?? null) !== JSON.stringify(this.machine)) {
      this.machine = header.machine ?? null;
      changes.add('machine');
    }
    if (!header.model || JSON.stringify(header.model) === JSON.stringify(this.model)) return;
    if (!this.model) this.sel = { ...this.sel, layer: Math.floor(header.model.num_layers / 3) }; // first layers look alike
    this.model = header.model;
    this.sel = { ...this.sel, ...this.#clamped(this.sel) };
    changes.add('model').add('select');
  }

  #takeSession(header, hydrate, changes) {
    if (!('session' in header)) return;
    const lost = this.session && !header.session;
    if (header.session?.sid !== this.session?.sid) this.params = null;
    const held = this.session;
    this.session = header.session;
    changes.add('session');
    if (lost) {
      this.epoch = -1;
      this.#setSteps([], changes);
      this.tokens = [];
      changes.add('tokens');
      if (this.wire.pending('reset')) this.memory.forget();
      else if (this.wire.isMine(header)) queueMicrotask(() => this.hello()); // the server was restarted
      return;
    }
    if (!header.session) return;
    for (const [id, piece] of Object.entries(header.pieces ?? {})) this.pieces.set(Number(id), piece);
    this.session = wholeSession(header.session, held);
    if (!this.#mergeSteps(header, hydrate, changes) || !header.tokens) return;
    this.tokens = [...this.tokens.slice(0, header.tokens_from ?? 0), ...header.tokens];
    for (const token of header.tokens) if (!this.pieces.has(token.id)) this.pieces.set(token.id, token);
    changes.add('tokens');
  }

  /** @returns {boolean} false where the frame goes on from something this tab does not hold */
  #mergeSteps(header, hydrate, changes) {
    const from = header.steps_from ?? 0;
    const same = header.session.epoch === this.epoch;
    const held = same ? this.steps : header.keeps === this.epoch ? this.steps.slice(0, from) : [];
    this.epoch = header.session.epoch;
    if (from > held.length || (header.tokens_from ?? 0) > this.tokens.length) {
      this.#setSteps([], changes); // a gap: ask for everything
      this.epoch = -1;
      this.wire.poll();
      return false;
    }
    const fresh = (header.steps ?? []).map((step) => ({ ...step, planes: hydrate(step.planes ?? {}) }));
    if (fresh.length || !same) this.#setSteps([...held.slice(0, from), ...fresh], changes);
    return true;
  }

  #setSteps(steps, changes) {
    this.steps = steps;
    changes.add('steps').add('select');
    if (this.#wanted && (this.#wanted.step ?? 0) < steps.length) {
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
    this.memory.keep(this.session, this.sel, this.newest, Boolean(this.settings?.solo));
    clearTimeout(this.settling);
    this.settling = setTimeout(() => {
      const { step, layer, head } = this.sel;
      const report = `${layer}/${head}`;
      if (!this.session || report === this.#reported) return;
      this.#reported = report;
      this.send('select', { step, layer, head }).catch(() => {});
    }, 500);
  }
}

/** A session as it is now: what the frame left out of it, prompt and earlier choices, this tab has already. */
function wholeSession(session, held) {
  const { chosen_from: from, ...recipe } = session.recipe ?? {};
  if (from === undefined) return session;
  if (!held?.recipe?.prompt_ids) return { ...session, recipe: undefined }; // not this tab's: it will ask for everything
  const { prompt, prompt_ids, roles, chosen_ids } = held.recipe;
  recipe.chosen_ids = [...chosen_ids.slice(0, from), ...recipe.chosen_ids];
  return { ...session, prompt: held.prompt, recipe: { ...recipe, prompt, prompt_ids, roles } };
}

/** The one store of this window. */
export function theStore() {
  window.__loupe ??= new Store();
  return window.__loupe;
}
