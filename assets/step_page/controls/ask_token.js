/** Ask for a token that is not among the bars: its rank, and its probability after every stage. */

import { icon, make, setText } from '../drawing/dom.js';
import { formatCount, formatProb } from '../drawing/format.js';
import { renderToken } from '../drawing/pieces.js';
import { namedToken } from '../drawing/token_names.js';

/** Place by raw score; a record keeps only the likeliest. */
function rankWords(step, id) {
  const ids = step.planes.cand_ids.data;
  const place = ids.indexOf(id);
  return place < 0 ? `beyond rank ${formatCount(ids.length)}` : `rank ${formatCount(place + 1)}`;
}

export class AskToken {
  /** @param {HTMLElement} root for the question @param {HTMLElement} below for the answer @param {(id: number) => void} onForce */
  constructor(root, below, store, onForce) {
    this.store = store;
    this.onForce = onForce;
    this.asked = null; // {key, text} of the answer on screen
    this.input = make('input.lp-ask-input', {
      type: 'text', autocomplete: 'off', spellcheck: false, placeholder: 'ask for a token: its text, or an id', 'aria-label': 'Text or id of a token',
    });
    this.said = make('div.lp-ask-said', { role: 'status' });
    const button = make('button.lp-toggle', {}, 'ask');
    button.type = 'submit';
    this.form = make('form.lp-ask', {}, this.input, button);
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
    this.said.append(make('button.icon-button.lp-ask-close', { 'aria-label': 'Close the answer', onclick: () => this.#close() }, icon('cross', 14)));
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
    setText(this.said, 'asking …');
    try {
      const answer = await this.store.send('ask', { step: step.index, text });
      if (this.asked === asked) this.#tell(answer, step);
    } catch (error) {
      if (this.asked !== asked) return;
      setText(this.said, error.message ?? String(error));
      this.#closable();
    }
  }

  #tell(answer, step) {
    const { pieces } = this.store;
    const id = answer.token_id;
    if (answer.piece) pieces.set(id, answer.piece);
    const piece = pieces.get(id);
    const stages = answer.stages ?? answer.probabilities ?? [];
    const chain = stages.flatMap(({ label, prob }, i) => [
      i ? make('i', { 'aria-hidden': 'true' }, '→') : null,
      make('span', {}, `${label} `, make('b', {}, prob === 0 ? 'cut' : formatProb(prob))),
    ]).filter(Boolean);
    this.said.replaceChildren(renderToken(make('b'), piece), make('span', {}, `id ${id}`),
      make('span', {}, rankWords(step, id)), ...chain);
    if (id !== step.draw.token_id) {
      this.said.append(make('button.lp-toggle', { title: `Force ${namedToken(piece)}`, onclick: () => this.#force(id) }, 'force it'));
    }
    this.#closable();
  }
}
