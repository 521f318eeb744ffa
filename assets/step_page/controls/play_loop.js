/**
 * Play: asks for step n + 1 only when step n is on screen. It pauses at once and never runs ahead of what is seen.
 *
 * Drawing happens in animation frames, and a hidden tab gets none: there the loop stops by itself.
 */

/** Steps per second by notch of the speed slider; Infinity is as fast as steps come. */
export const SPEEDS = [0.5, 1, 2, 3, 5, 8, 12, 20, Infinity];

export class PlayLoop {
  /** @param {() => Promise<any>|null} step asks for one step; null where there is none to ask for */
  constructor(store, step, onChange) {
    this.store = store;
    this.step = step;
    this.onChange = onChange;
    this.playing = false;
    this.speed = 5;
    this.asked = 0;
    this.timer = 0;
    this.onDrawn = () => this.#next();
    this.onHidden = () => document.hidden && this.pause();
    store.addEventListener('drawn', this.onDrawn);
    document.addEventListener('visibilitychange', this.onHidden);
  }

  toggle() {
    if (this.playing) this.pause();
    else this.start();
  }

  start() {
    this.playing = true;
    this.asked = 0;
    this.onChange();
    this.#next();
  }

  pause() {
    if (!this.playing) return;
    this.playing = false;
    clearTimeout(this.timer);
    this.onChange();
  }

  #next() {
    if (!this.playing || this.store.wire.pending('step')) return;
    clearTimeout(this.timer);
    const most = this.store.limits.play_rate || Infinity; // a shared server's limit: it would only make us wait
    const due = this.asked + 1000 / Math.min(this.speed, most);
    this.timer = setTimeout(() => this.#ask(), Math.max(0, due - performance.now()));
  }

  #ask() {
    if (!this.playing || this.store.wire.pending('step')) return;
    this.asked = performance.now();
    const answer = this.step();
    if (answer) answer.catch(() => this.pause());
    else this.pause();
  }

  destroy() {
    this.pause();
    this.store.removeEventListener('drawn', this.onDrawn);
    document.removeEventListener('visibilitychange', this.onHidden);
  }
}
