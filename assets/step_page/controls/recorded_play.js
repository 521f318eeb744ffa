/** Play over a recording: step after recorded step is looked at, at the chosen speed. Nothing is decoded. */

const FASTEST_MS = 50;

export class RecordedPlay {
  #timer = 0;

  /** @param {() => number} pause between two steps, in ms @param {() => void} onChange */
  constructor(store, pause, onChange) {
    this.store = store;
    this.pause = pause;
    this.onChange = onChange;
  }

  get playing() {
    return this.#timer !== 0;
  }

  /** From the step on screen; at the last one, from the first. */
  start() {
    const { store } = this;
    if (store.sel.step >= store.newest) store.select({ step: 0 });
    this.#wait();
    this.onChange();
  }

  stop() {
    clearTimeout(this.#timer);
    this.#timer = 0;
    this.onChange();
  }

  #wait() {
    clearTimeout(this.#timer);
    this.#timer = setTimeout(() => this.#next(), Math.max(FASTEST_MS, this.pause()));
  }

  #next() {
    const { store } = this;
    store.select({ step: store.sel.step + 1 });
    if (!store.isOpened || store.sel.step >= store.newest) return this.stop();
    return this.#wait();
  }
}
