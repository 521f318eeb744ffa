/**
 * Five sliders for the sampler. While one moves only the picture changes; what was drawn stays drawn.
 *
 * A handle moves from value to value: each has a list of them, evenly spaced, so that one press of an arrow key is
 * always another value. Top-k is logarithmic and ends at "off"; min-p is fine where the useful values are.
 */

import { say } from '../../drawing/say.js';
import { make, setText } from '../../drawing/dom.js';
import { formatCount } from '../../drawing/format.js';

const SLIDER_SETTLE_MS = 180; // arrow keys report every press as settled
const TOP_K_PLACES = 240;

/** from, from + 1, ... to, each divided by `parts`: 0, 0.01, 0.02 ... without rounding errors that show. */
const evenly = (from, to, parts) => Array.from({ length: to - from + 1 }, (_, i) => (from + i) / parts);

/** 1, 2, 3 ... up to the vocabulary in even ratios, each once; then 0, which cuts nothing. */
function topKValues(vocabulary) {
  const grown = Array.from({ length: TOP_K_PLACES }, (_, i) => Math.round(vocabulary ** (i / TOP_K_PLACES)));
  return [...new Set(grown), 0];
}

const twoDigits = (off) => (v) => (v === off ? 'off' : v.toFixed(2));

/** off: the value that leaves the distribution alone. values: what the handle passes, from left to right. */
const SLIDERS = [
  { name: 'temperature', term: 'temperature', label: say('sliders.temp'), off: 1, values: () => evenly(0, 200, 100), words: (v) => (v === 0 ? 'greedy' : v.toFixed(2)) },
  { name: 'top_k', term: 'top-k', label: say('sliders.top_k'), off: 0, values: topKValues, words: (v) => (v === 0 ? 'off' : formatCount(v)) },
  { name: 'top_p', term: 'top-p', label: say('sliders.top_p'), off: 1, values: () => evenly(0, 100, 100), words: twoDigits(1) },
  {
    name: 'min_p', term: 'min-p', label: say('sliders.min_p'), off: 0, values: () => [...evenly(0, 99, 1000), ...evenly(10, 100, 100)],
    words: (v) => (v === 0 ? 'off' : String(Number(v.toPrecision(2)))),
  },
  { name: 'repetition_penalty', term: 'repetition penalty', label: say('sliders.penalty'), off: 1, values: () => evenly(50, 200, 100), words: twoDigits(1) },
];

/** Place of the listed value nearest to one that came from elsewhere: a preset, a link. Top-k 0 stands at the end. */
export function sliderPlace(values, value) {
  if (values.at(-1) === 0 && value <= 0) return values.length - 1;
  const distance = values.map((listed) => Math.abs(listed - value));
  return distance.indexOf(Math.min(...distance));
}

export class Sliders {
  /** @param {(sampling: object) => void} onMove while moving @param {(sampling: object) => void} onSettle once let go */
  constructor(root, onMove, onSettle) {
    this.onMove = onMove;
    this.onSettle = onSettle;
    this.sampling = null;
    this.vocabulary = 0;
    this.moving = null;
    this.parts = SLIDERS.map((slider) => this.#slider(slider));
    root.append(...this.parts.map((part) => part.node));
  }

  #slider(slider) {
    const value = make('b');
    const input = make('input', { type: 'range', min: 0, step: 1, 'aria-label': slider.label });
    const node = make('label.lp-slider', { title: say('sliders.off_title') }, make('span', {}, make('span', { data: { term: slider.term } }, slider.label), value), input);
    const part = { slider, value, input, node, values: [] };
    input.addEventListener('input', () => this.#move(part, part.values[Number(input.value)]));
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
    if (vocabulary !== this.vocabulary) this.#span(vocabulary);
    if (this.moving) return;
    this.sampling = sampling;
    for (const part of this.parts) this.#show(part);
  }

  #span(vocabulary) {
    this.vocabulary = vocabulary;
    for (const part of this.parts) {
      part.values = part.slider.values(vocabulary);
      part.input.max = part.values.length - 1;
    }
  }

  #show({ slider, value, input, values }) {
    const current = this.sampling[slider.name];
    const words = slider.words(current);
    const place = sliderPlace(values, current);
    setText(value, words);
    input.setAttribute('aria-valuetext', words);
    if (Number(input.value) !== place) input.value = place;
    input.style.setProperty('--share', `${((100 * place) / (values.length - 1)).toFixed(1)}%`);
    input.parentElement.dataset.off = String(current === slider.off);
  }

  #move(part, next) {
    clearTimeout(this.settling);
    this.moving = part;
    this.sampling = { ...this.sampling, [part.slider.name]: next };
    this.#show(part);
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
