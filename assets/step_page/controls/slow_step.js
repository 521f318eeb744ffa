/**
 * One step, slowly: the same step as any other, shown in five beats along the five stations.
 *
 * The record is here before the first beat begins, and so nothing shown is made up. The parts of the page that would give
 * the result away are told of the step when their beat comes, and not before. Any key or press ends it at once, with
 * everything in its place. Where the system asks for less motion, the beats are five stills: Space or Next leads on.
 *
 * For tests: .loupe[data-beat=<name>], .turn-said, .turn-next, .is-lit
 */

import { make, setText } from '../drawing/dom.js';
import { reducedMotion } from '../drawing/canvas.js';
import { say } from '../drawing/say.js';

const LEADS_ON = [' ', 'Enter', 'ArrowRight'];
const ALONE = ['Shift', 'Control', 'Alt', 'Meta', 'CapsLock'];

/** The sentence of a beat, over the way back from the last station to the first. */
class BeatLine {
  constructor(place, onNext) {
    this.number = make('i', { 'aria-hidden': 'true' });
    this.words = make('span', { role: 'status' });
    this.count = make('span.turn-count', { 'aria-hidden': 'true' });
    this.next = make('button.small-button.turn-next', { onclick: onNext }, say('turn.next'));
    this.node = make('div.turn-said', { hidden: true }, this.number, this.words, this.count, this.next);
    place.append(this.node);
  }

  say(words, number) {
    this.node.hidden = false;
    setText(this.number, String(number));
    setText(this.words, words);
    setText(this.count, '');
  }

  hide() {
    this.node.hidden = true;
    setText(this.words, '');
  }
}

export class SlowStep {
  /**
   * @param {HTMLElement} root the page @param {HTMLElement} place where the sentences go
   * @param {Array<{name: string, ms: number, begin: (step: object) => string, then?: {at: number, run: (step: object) => string}}>} beats
   *   begin shows it and returns its sentence; then: what follows within it, after a share of its time
   * @param {{draw: (part: object, changes: Set<string>, how?: object) => void, end: () => void, over: () => void}} on end: take every mark away; over: all parts have been drawn
   */
  constructor(root, store, { place, beats, on }) {
    Object.assign(this, { root, store, beats, on });
    this.held = new Set(); // parts of the page that are told of the step by a beat, or at the end; set by the page
    this.kept = new Map(); // part -> changes it has not been told
    this.expected = null; // {sid, epoch, index}: of the step that will be shown
    this.at = -1;
    this.line = new BeatLine(place, () => this.#lead());
    this.onKey = (event) => this.#key(event);
    this.onPress = (event) => this.#press(event);
  }

  get isOn() {
    return this.at >= 0;
  }

  /** The step that was just asked for is to be shown slowly, once it has come. */
  expect() {
    const { store } = this;
    this.expected = { sid: store.session?.sid, epoch: store.epoch, index: store.newest + store.line.pending('step') };
  }

  forget() {
    this.expected = null;
  }

  /** Before the page draws a change: begin with the step that was expected, or end where another one came over it. */
  watch() {
    const { store, expected } = this;
    const now = { sid: store.session?.sid, epoch: store.epoch, index: store.newest };
    const same = (other) => other && Object.keys(now).every((key) => now[key] === other[key]);
    if (this.isOn && !(same(this.shown) && store.sel.step === now.index)) return this.end();
    if (this.isOn || !expected) return undefined;
    if (same(expected) && store.sel.step === now.index) return this.#begin(now);
    if (now.sid !== expected.sid || now.epoch !== expected.epoch || now.index > expected.index) this.forget();
    return undefined;
  }

  /** @returns {boolean} whether a part's changes are kept back from it, for now */
  keeps(part, changes) {
    if (!this.isOn || !this.held.has(part)) return false;
    const waits = this.kept.get(part);
    if (!waits) return false; // its beat has been
    for (const change of changes) waits.add(change);
    return true;
  }

  #begin(shown) {
    this.forget();
    this.shown = shown;
    this.isStill = reducedMotion();
    this.line.next.hidden = !this.isStill;
    for (const part of this.held) this.kept.set(part, new Set());
    window.addEventListener('keydown', this.onKey, true);
    window.addEventListener('pointerdown', this.onPress, true);
    this.at = 0;
    this.root.dataset.beat = this.beats[0].name; // whoever draws in this frame knows that the step is not through yet
    this.timer = setTimeout(() => this.#show(), 0); // the changes of this very frame are kept first
  }

  #show() {
    const beat = this.beats[this.at];
    const step = this.store.selected;
    this.root.dataset.beat = beat.name;
    this.line.say(beat.begin(step), this.at + 1);
    const { ms, then } = beat;
    const go = () => this.line.say(then.run(step), this.at + 1);
    if (this.isStill) return then && go();
    const share = then?.at ?? 1;
    this.timer = setTimeout(() => {
      if (!then) return this.#lead();
      go();
      this.timer = setTimeout(() => this.#lead(), ms * (1 - share));
      return undefined;
    }, ms * share);
    return undefined;
  }

  /** A part learns of the step, and is drawn. */
  tell(part, how) {
    const changes = this.kept.get(part);
    if (!changes) return;
    this.kept.delete(part);
    this.on.draw(part, changes, how);
  }

  #lead() {
    clearTimeout(this.timer);
    this.at += 1;
    if (this.at < this.beats.length) this.#show();
    else this.end();
  }

  /** Everything in its place, at once. */
  end() {
    if (!this.isOn) return;
    this.#stop();
    for (const part of [...this.kept.keys()]) this.tell(part);
    this.on.over();
  }

  #stop() {
    clearTimeout(this.timer);
    this.at = -1;
    window.removeEventListener('keydown', this.onKey, true);
    window.removeEventListener('pointerdown', this.onPress, true);
    delete this.root.dataset.beat;
    this.line.hide();
    this.on.end();
  }

  /** A key ends it and does what it always does; Esc only ends it, and with stills Space leads on. */
  #key(event) {
    if (ALONE.includes(event.key) || event.repeat) return;
    const isOurs = this.isStill && LEADS_ON.includes(event.key) && !event.composedPath()[0].closest?.('button');
    if (isOurs || event.key === 'Escape') {
      event.preventDefault();
      event.stopImmediatePropagation();
    } else if (this.isStill && event.key === 'Tab') return;
    if (isOurs) this.#lead();
    else if (!event.composedPath().includes(this.line.next)) this.end();
  }

  #press(event) {
    if (!event.composedPath().includes(this.line.next)) this.end();
  }

  destroy() {
    if (this.isOn) this.#stop();
  }
}
