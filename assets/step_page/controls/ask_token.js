/** Ask for any token of the vocabulary: its rank, and its probability after every stage. For tests: .lp-ask-reading[data-id] */

import { say } from '../drawing/say.js';
import { icon, make, setText } from '../drawing/dom.js';
import { namedToken } from '../drawing/token_names.js';
import { standingNodes } from '../panels/next_token/token_standing.js';

export class AskToken {
  /** @param {HTMLElement} root for the question @param {HTMLElement} below for the answer @param {(id: number) => void} onForce */
  constructor(root, below, store, onForce) {
    this.store = store;
    this.onForce = onForce;
    this.asked = null; // {key, text} of the answer on screen
    this.input = make('input.lp-ask-input', {
      type: 'text', autocomplete: 'off', spellcheck: false, placeholder: say('ask_token.placeholder'), 'aria-label': say('ask_token.label'),
    });
    this.said = make('div.lp-ask-said', { role: 'status' });
    const button = make('button.lp-toggle', {}, say('ask_token.ask'));
    button.type = 'submit';
    this.form = make('form.lp-ask', { data: { live: '' } }, this.input, button);
    this.form.addEventListener('submit', (event) => {
      event.preventDefault();
      this.#ask();
    });
    root.append(this.form);
    below.append(this.said);
  }

  /** The same question about another step. */
  draw() {
    const step = this.store.selected;
    if (!this.asked || this.asked.key === this.store.keyOf(step)) return;
    this.#close();
  }

  #close() {
    this.asked = null;
    this.said.replaceChildren();
  }

  #closable() {
    this.said.append(make('button.icon-button.lp-ask-close', { 'aria-label': say('ask_token.close'), onclick: () => this.#close() }, icon('cross', 14)));
  }

  #force(id) {
    this.#close();
    this.onForce(id);
  }

  async #ask() {
    const step = this.store.selected;
    const text = this.input.value;
    if (!step || !text) return;
    const asked = (this.asked = { key: this.store.keyOf(step), text });
    setText(this.said, say('ask_token.asking'));
    try {
      const answer = await this.store.send('ask', { step: step.index, text });
      if (this.asked === asked) this.#tell(answer, step);
    } catch (error) {
      if (this.asked !== asked) return;
      setText(this.said, error.message ?? String(error));
      this.#closable();
    }
  }

  #tell({ readings }, step) {
    const { pieces, model } = this.store;
    const rows = readings.map((reading) => {
      const { token_id: id, piece } = reading;
      pieces.set(id, piece);
      const row = make('div.lp-ask-reading', { data: { id } }, ...standingNodes(reading, model.vocab_size));
      if (id !== step.draw.token_id) {
        row.append(make('button.lp-toggle', { title: say('ask_token.force', { piece: namedToken(piece) }), onclick: () => this.#force(id) }, say('ask_token.force_it')));
      }
      return row;
    });
    this.said.replaceChildren(make('div.lp-ask-readings', {}, ...rows));
    this.#closable();
  }
}
