/**
 * Five sliders for the sampler. While one moves only the picture changes; what was drawn stays drawn.
 *
 * Each has its own way from the handle's place to the value: top-k is logarithmic and its right end is "off".
 */

import { make, setText } from '../../drawing/dom.js';
import { formatCount } from '../../drawing/format.js';

const SLIDER_STEPS = 1000;
const SLIDER_SETTLE_MS = 180; // arrow keys report every press as settled

const rounded = (value, digits) => Number(value.toFixed(digits));

/** off: the value that leaves the distribution alone. */
const SLIDERS = [
  {
    name: 'temperature', label: 'temp', off: 1,
    value: (t) => rounded(2 * t, 2), place: (v) => v / 2, words: (v) => (v === 0 ? 'greedy' : v.toFixed(2)),
  },
  {
    name: 'top_k', label: 'top-k', off: 0,
    value: (t, vocabulary) => (t >= 1 ? 0 : Math.max(1, Math.round(vocabulary ** t))),
    place: (v, vocabulary) => (v <= 0 || v >= vocabulary ? 1 : Math.log(v) / Math.log(vocabulary)),
    words: (v) => (v === 0 ? 'off' : formatCount(v)),
  },
  { name: 'top_p', label: 'top-p', off: 1, value: (t) => rounded(t, 2), place: (v) => v, words: (v) => (v === 1 ? 'off' : v.toFixed(2)) },
  {
    name: 'min_p', label: 'min-p', off: 0, // squared: the useful values are small
    value: (t) => rounded(t * t, t < 0.32 ? 3 : 2), place: (v) => Math.sqrt(v), words: (v) => (v === 0 ? 'off' : String(v)),
  },
  {
    name: 'repetition_penalty', label: 'penalty', off: 1,
    value: (t) => rounded(0.5 + 1.5 * t, 2), place: (v) => (v - 0.5) / 1.5, words: (v) => (v === 1 ? 'off' : v.toFixed(2)),
  },
];

export class Sliders {
  /** @param {(sampling: object) => void} onMove while moving @param {(sampling: object) => void} onSettle once let go */
  constructor(root, onMove, onSettle) {
    this.onMove = onMove;
    this.onSettle = onSettle;
    this.sampling = null;
    this.vocabulary = 2;
    this.moving = null;
    this.parts = SLIDERS.map((slider) => this.#slider(slider));
    root.append(...this.parts.map((part) => part.node));
  }

  #slider(slider) {
    const value = make('b');
    const input = make('input', { type: 'range', min: 0, max: SLIDER_STEPS, step: 1, 'aria-label': slider.label });
    const node = make('label.lp-slider', { title: 'Double-click: off' }, make('span', {}, make('span', {}, slider.label), value), input);
    const part = { slider, value, input, node };
    input.addEventListener('input', () => this.#move(part, slider.value(input.value / SLIDER_STEPS, this.vocabulary)));
    input.addEventListener('change', () => this.#settle());
    node.addEventListener('dblclick', (event) => {
      event.preventDefault();
      this.#move(part, slider.off);
      this.#settle();
    });
    return part;
  }

  /** Show settings; the slider somebody is moving is left alone. */
  set(sampling, vocabulary) {
    this.vocabulary = vocabulary;
    if (this.moving) return;
    this.sampling = sampling;
    for (const part of this.parts) this.#show(part, true);
  }

  #show({ slider, value, input }, moveHandle) {
    const current = this.sampling[slider.name];
    const words = slider.words(current);
    setText(value, words);
    input.setAttribute('aria-valuetext', words);
    const share = Math.max(0, Math.min(1, slider.place(current, this.vocabulary)));
    if (moveHandle) input.value = Math.round(share * SLIDER_STEPS);
    input.style.setProperty('--share', `${(share * 100).toFixed(1)}%`);
    input.parentElement.dataset.off = String(current === slider.off);
  }

  #move(part, next) {
    clearTimeout(this.settling);
    this.moving = part;
    this.sampling = { ...this.sampling, [part.slider.name]: next };
    this.#show(part, next === part.slider.off);
    this.onMove(this.sampling);
  }

  #settle() {
    clearTimeout(this.settling);
    this.settling = setTimeout(() => {
      this.moving = null;
      this.onSettle(this.sampling);
    }, SLIDER_SETTLE_MS);
  }

  destroy() {
    clearTimeout(this.settling);
  }
}
