/**
 * Surprisal: how little the model expected each token of the run, in bits; and perplexity, the same as one number.
 *
 * A token's surprisal is -log2 of the probability that the model gave it before any sampling stage. Those of the run's own
 * tokens stand in their records; those of the prompt are asked for once, by replaying it. Perplexity is 2 to the mean
 * surprisal: as if at every token the model had hesitated between so many equally likely ones.
 */

/** @param {number|null} p a probability @returns {number|null} bits; null where there is none */
export function bitsOf(p) {
  return p === null || p === undefined ? null : -Math.log2(p);
}

/** @param {Array<number|null>} bits @returns {{count: number, mean: number, perplexity: number} | null} null: of no token */
export function perplexityOf(bits) {
  const known = bits.filter((one) => one !== null);
  if (!known.length) return null;
  const mean = known.reduce((sum, one) => sum + one, 0) / known.length;
  return { count: known.length, mean, perplexity: 2 ** mean };
}

export class Surprisal {
  on = false;
  asking = false;
  error = '';
  #answer = { key: '', bits: [] }; // of each prompt token, once they have come; the first has none
  #key = ''; // of the prompt on screen

  constructor(store) {
    this.store = store;
  }

  toggle() {
    this.on = !this.on;
    this.error = '';
    this.#changed();
  }

  #changed() {
    this.store.emit(new Set(['surprisal']));
  }

  /** Before a drawing, while it is on: which prompt this is, whose part is asked for once. */
  async sync() {
    if (!this.on) return;
    const { store } = this;
    const isHere = store.steps.length > 0 && !store.recording;
    const key = (this.#key = isHere ? `${store.session?.sid}/${store.tokens.slice(0, store.promptLength).map(({ id }) => id).join(' ')}` : '');
    if (!key || this.asking || this.#answer.key === key || this.error) return;
    this.asking = true;
    try {
      const rows = store.promptLength > 1 ? (await store.send('prompt_rows')).rows : [];
      this.#answer = { key, bits: [null, ...rows.slice(0, -1).map((row) => bitsOf(row.actual_next_prob))] };
    } catch (error) {
      this.error = error.message ?? String(error);
    }
    this.asking = false;
    this.#changed();
  }

  /** @returns {number|null} of the token at a position; null where it has none, or it is not here yet */
  at(position) {
    const { store } = this;
    if (position >= store.promptLength) return bitsOf(store.steps[position - store.promptLength]?.draw.raw_prob ?? null);
    return this.#answer.key === this.#key ? (this.#answer.bits[position] ?? null) : null;
  }

  /** @returns {{prompt, generated, all}} each as `perplexityOf` gives it */
  summary() {
    const { store } = this;
    const bits = store.tokens.map((_, position) => this.at(position));
    const [prompt, generated] = [bits.slice(0, store.promptLength), bits.slice(store.promptLength)];
    return { prompt: perplexityOf(prompt), generated: perplexityOf(generated), all: perplexityOf(bits) };
  }
}
