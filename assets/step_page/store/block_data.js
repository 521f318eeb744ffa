/**
 * What the newest token of a step went through in every layer: asked for once a step, all layers in one answer.
 *
 * While the run plays nothing is asked for: a replay beside every step would halve its pace.
 */

const BLOCK_SETTLE_MS = 160; // scrubbing past a step is not looking at it
const BLOCKS_KEPT = 60; // steps

export class BlockData {
  /** @param {() => void} arrived called when an answer has come, or has failed */
  constructor(store, arrived) {
    this.store = store;
    this.arrived = arrived;
    this.answers = new Map(); // key of a record -> the answer, 'asked', or {message}
  }

  /** The answer for a step, or null. */
  of(step) {
    const answer = this.answers.get(this.store.keyOf(step));
    return answer?.layers ? answer : null;
  }

  /** 'here', 'asked', 'failed', 'playing' or 'missing' */
  state(step) {
    const answer = this.answers.get(this.store.keyOf(step));
    if (answer) return answer === 'asked' ? 'asked' : answer.layers ? 'here' : 'failed';
    return this.store.play.on ? 'playing' : 'missing';
  }

  message(step) {
    return this.answers.get(this.store.keyOf(step))?.message ?? '';
  }

  /** Ask for a step once the selection has rested on it. */
  want(step) {
    clearTimeout(this.settling);
    if (this.state(step) !== 'missing') return;
    this.settling = setTimeout(() => this.store.selected === step && this.state(step) === 'missing' && this.#ask(step), BLOCK_SETTLE_MS);
  }

  async #ask(step) {
    const key = this.store.keyOf(step);
    this.answers.set(key, 'asked');
    if (this.answers.size > BLOCKS_KEPT) this.answers.delete(this.answers.keys().next().value);
    try {
      this.answers.set(key, await this.store.send('blocks', { step: step.index }));
    } catch (error) {
      this.answers.set(key, { message: error.message ?? String(error) });
    }
    this.arrived();
  }

  stop() {
    clearTimeout(this.settling);
  }
}
