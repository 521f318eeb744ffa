/**
 * The acts of a lesson: done by the page for a scene, or awaited from the reader.
 *
 * Whatever changes the run goes over the line like every other command; the rest presses what a reader would press.
 *
 *   {act: 'step', n} {act: 'prefill', prompt, mode, afresh} {act: 'slow'} {act: 'play', n} {act: 'look', step, layer, head, token}
 *   {act: 'open', name} {act: 'close'} {act: 'set', sampling, stop, seed, solo} {act: 'force', text} {act: 'rewind', step}
 *   {act: 'fork'} {act: 'again'} {act: 'samples'} {act: 'check'} {act: 'triangle'} {act: 'measure'}
 */

import { reducedMotion } from '../drawing/canvas.js';
import { sameSampling } from '../store/distribution.js';
import { stepOfPosition } from '../store/roles.js';
import { fitsState } from './lesson_state.js';

const NEAR = 0.2; // a fifth
const BETWEEN_MS = 350; // two steps that the page takes by itself: each is to be seen
const TOGETHER_MS = 2500; // and many of them are not to be waited for
const LAYS_OVER = '.popover:popover-open, dialog.sheet[open]';
const OPENED = {
  forward: '.popover-block:popover-open',
  stops: '.popover-stops:popover-open',
  settings: '.popover-sampling:popover-open',
  branches: '.popover-branches:popover-open',
  checks: '.sheet-checks[open]',
  predictions: '.sheet-prompt-rows[open]',
  layers: '.sheet-layers[open]',
  help: '.sheet-help[open]',
  model: '.sheet-model[open]',
  surprisal: '.surprisal-button[aria-pressed="true"]',
};
const PRESSED = { again: '[data-trial="again"]', samples: '[data-trial="hundred"]', triangle: '.lp-triangle' };

/** Acts that change the run; all others only show something. */
export const RUN_ACTS = ['prefill', 'step', 'slow', 'play', 'set', 'force', 'rewind', 'fork'];

export class LessonActs {
  #pressed = new Set();
  #branches = 0; // how many there were when the scene began

  /** @param {HTMLElement} root the page @param {{open: Object<string, () => void>, slow: () => void,
   *   use: (sampling: object) => Promise<void>}} tools */
  constructor(root, store, tools) {
    Object.assign(this, { root, store, tools });
    this.onClick = ({ target }) => {
      for (const [act, selector] of Object.entries(PRESSED)) if (target.closest?.(selector)) this.#pressed.add(act);
    };
    root.addEventListener('click', this.onClick, true);
  }

  /** A scene begins: what was pressed before does not count. */
  begin() {
    this.#pressed.clear();
    this.#branches = this.#countBranches();
  }

  /** @param {object} end the state in which the scene ends */
  isDone(action, end) {
    const { store, root } = this;
    const { act } = action;
    if (act === 'look') return this.#isLooking(action);
    if (act === 'open') return root.querySelector(OPENED[action.name]) !== null;
    if (act === 'close') return root.querySelector(LAYS_OVER) === null;
    if (act === 'check') return ['passed', 'failed'].includes(root.querySelector('.checks-badge')?.dataset.state);
    if (act === 'measure') return store.machine !== null;
    if (act === 'fork') return this.#countBranches() > this.#branches;
    if (act in PRESSED) return this.#pressed.has(act);
    if (!fitsState(store, end) || 'beat' in root.dataset) return false;
    if (action.solo !== undefined && store.settings.solo !== action.solo) return false;
    return act !== 'rewind' || store.newest === end.steps;
  }

  /** What was set by hand is close to what was asked for: a slider is not hit to the last digit. */
  isNear({ act, sampling }) {
    const now = this.store.settings?.sampling;
    if (act !== 'set' || !sampling || !now) return false;
    return Object.entries(sampling).every(([name, value]) => Math.abs(now[name] - value) <= Math.max(Math.abs(value) * NEAR, NEAR / 2));
  }

  #countBranches() {
    return this.store.session?.branches?.length ?? 0;
  }

  #isLooking(action) {
    return Object.entries(this.#lookedAt(action)).every(([name, value]) => this.store.sel[name] === value);
  }

  /** What of the selection an act asks for: {step, layer, head}, without those that may stay. */
  #lookedAt({ step, layer, head, token }) {
    const { store } = this;
    const wanted = token !== undefined ? stepOfPosition(store, token) : step === 'newest' ? store.newest : step;
    return Object.fromEntries(Object.entries({ step: wanted, layer, head }).filter(([, value]) => value !== undefined));
  }

  /** @param {() => boolean} isWanted whether to go on: the reader may have left */
  async perform(action, isWanted = () => true) {
    const { store, root, tools } = this;
    const { act } = action;
    if (act === 'step' || act === 'play') return this.#steps(action.n, isWanted);
    if (act === 'slow') return this.#slowly();
    if (act === 'look') return store.select(this.#lookedAt(action));
    if (act === 'open') return root.querySelector(OPENED[action.name]) ? undefined : tools.open[action.name]();
    if (act === 'close') return this.close();
    if (act === 'force') return this.#force(action.text);
    if (act === 'check') return tools.open.checks();
    if (act === 'measure') return store.machine ?? store.send('measure_machine');
    if (act in PRESSED) return this.#press(act);
    if (act === 'set') return this.#set(action);
    const { act: op, ...args } = action;
    return store.send(op, op === 'fork' ? { step: store.newest } : args);
  }

  async #steps(count, isWanted) {
    const { store } = this;
    for (let i = 0; i < count && isWanted(); i++) {
      if (i && !reducedMotion()) await new Promise((done) => setTimeout(done, Math.min(BETWEEN_MS, TOGETHER_MS / count)));
      store.follow();
      await store.send('step');
    }
  }

  /** @returns once its step has come; its beats go on meanwhile */
  async #slowly() {
    const { store, tools } = this;
    const next = store.newest + 1;
    tools.slow();
    await new Promise((done) => {
      const arrived = () => {
        if (store.newest < next && store.line.pending('step')) return;
        store.removeEventListener('change', arrived);
        done();
      };
      store.addEventListener('change', arrived);
    });
  }

  /** The sliders move too, and the bars say what the new settings would have made of this step. */
  async #set({ sampling, stop, seed, solo }) {
    const { store, tools } = this;
    const args = Object.entries({ sampling, stop, seed, solo }).filter(([, value]) => value !== undefined);
    await store.send('settings', Object.fromEntries(args));
    if (sampling && store.selected && !sameSampling(sampling, store.selected.sampling)) await tools.use(sampling);
  }

  async #force(text) {
    const { store } = this;
    const step = store.newest;
    const { readings } = await store.send('ask', { step, text });
    const exact = readings.find(({ piece }) => piece.text === text) ?? readings[0];
    store.follow();
    return store.send('force', { step, token_id: exact.token_id });
  }

  #press(act) {
    const button = this.root.querySelector(PRESSED[act]);
    if (act !== 'triangle' || button?.getAttribute('aria-pressed') !== 'true') button?.click();
    this.#pressed.add(act);
  }

  close() {
    for (const open of this.root.querySelectorAll(LAYS_OVER)) open.querySelector('.overlay-head button')?.click();
  }

  destroy() {
    this.root.removeEventListener('click', this.onClick, true);
  }
}
