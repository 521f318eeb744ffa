/**
 * A link wants another model than the one that runs: nothing is loaded or downloaded until somebody here says so.
 *
 * For tests: .link-question, .link-load, .link-without
 */

import { say } from '../drawing/say.js';
import { make, setText } from '../drawing/dom.js';

export class LinkQuestion {
  /** @param {(words: string) => void} refuse where a refusal is read */
  constructor(root, store, refuse) {
    this.store = store;
    this.refuse = refuse;
    this.words = make('span');
    this.load = make('button.link-load', { onclick: () => this.#answer(true) });
    this.without = make('button.link-without', { onclick: () => this.#answer(false) }, say('link_question.go_on'));
    this.node = make('p.link-question', { role: 'alert', hidden: true }, this.words, this.load, this.without);
    root.append(this.node);
  }

  draw() {
    const { link, line } = this.store;
    const wanted = link?.asks;
    this.node.hidden = !wanted;
    if (!wanted) return;
    setText(this.words, say('link_question.asks', { model: wanted }));
    setText(this.load, say('link_question.load', { model: wanted }));
    this.load.disabled = this.without.disabled = line.pending('follow_link') > 0;
  }

  async #answer(load) {
    this.refuse('');
    try {
      await this.store.send('follow_link', { load });
    } catch (error) {
      this.refuse(error.message);
    }
  }
}
