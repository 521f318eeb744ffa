/**
 * A link wants another model than the one that runs: nothing is loaded or downloaded until somebody here says so.
 *
 * For tests: .link-question, .link-load, .link-without
 */

import { make, setText } from '../drawing/dom.js';

export class LinkQuestion {
  /** @param {(words: string) => void} say where a refusal is read */
  constructor(root, store, say) {
    this.store = store;
    this.say = say;
    this.words = make('span');
    this.load = make('button.link-load', { onclick: () => this.#answer(true) });
    this.without = make('button.link-without', { onclick: () => this.#answer(false) }, 'Go on with the model here');
    this.node = make('p.link-question', { role: 'alert', hidden: true }, this.words, this.load, this.without);
    root.append(this.node);
  }

  draw() {
    const { link, line } = this.store;
    const wanted = link?.asks;
    this.node.hidden = !wanted;
    if (!wanted) return;
    setText(this.words, `This link asks for another model: ${wanted}. It is not loaded. Loading it reads its files from this computer or, where they are not here, downloads them from the Hugging Face Hub.`);
    setText(this.load, `Load ${wanted}`);
    this.load.disabled = this.without.disabled = line.pending('follow_link') > 0;
  }

  async #answer(load) {
    this.say('');
    try {
      await this.store.send('follow_link', { load });
    } catch (error) {
      this.say(error.message);
    }
  }
}
