/**
 * Samples that are only tried: one more number u, or a hundred of them, on the distribution on screen.
 *
 * They are drawn in the browser and change nothing: the run keeps its own u and its own token. The numbers stay while a
 * slider moves, so that one sees what other settings would make of the same luck, and go with the step.
 *
 * For tests: .lp-trials button[data-trial=again|hundred]
 */

import { icon, make, setText } from '../../drawing/dom.js';
import { say } from '../../drawing/say.js';
import { seededNumbers } from './segments.js';

export const HUNDRED = 100;

export class Trials {
  u = null; // of "sample again"
  numbers = null; // a hundred
  #key = '';
  #presses = 0;

  /** @param {HTMLElement} root for the buttons @param {() => void} onChange */
  constructor(root, onChange) {
    const button = (name, face, words, title, act) =>
      make('button.lp-toggle', { data: { trial: name }, title, onclick: () => { act(); onChange(); } }, face, make('span', {}, words));
    this.said = make('span.visually-hidden', { role: 'status' });
    root.append(
      button('again', icon('dice', 15), say('sampling.again'), say('sampling.again_title'), () => { this.u = Math.random(); }),
      button('hundred', make('b', {}, `×${HUNDRED}`), say('sampling.hundred'), say('sampling.hundred_title', { count: HUNDRED }), () => this.#throw()),
      this.said,
    );
    root.firstChild.setAttribute('aria-label', say('sampling.again')); // its words are hidden where there is no room for them
  }

  /** Another step is looked at: what was tried on the last one is over. */
  keepFor(key) {
    if (key === this.#key) return;
    this.#key = key;
    this.u = this.numbers = null;
    this.#presses = 0;
    setText(this.said, '');
  }

  /** Another press, other numbers; the same ones for the same step and press, whoever looks. */
  #throw() {
    this.#presses += 1;
    const step = this.#key.slice(this.#key.indexOf('/')); // without the session
    const seed = Array.from(step).reduce((hash, char) => (Math.imul(hash, 31) + char.codePointAt(0)) | 0, this.#presses);
    this.numbers = seededNumbers(seed, HUNDRED);
  }

  /** What came of it, for screen readers. */
  tell(words) {
    setText(this.said, words);
  }
}
