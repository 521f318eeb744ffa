/**
 * Play, as it is shown: what was pressed last, at once, and then what the server says. The server asks for step after step,
 * each once the one before has been drawn here (store/live_line.js), so play never runs ahead of what is seen.
 *
 * Looking at another step pauses, and so does a hidden tab.
 */

import { RecordedPlay } from './recorded_play.js';

/** Steps per second by notch of the speed slider; Infinity is as fast as steps come. */
export const SPEEDS = [0.5, 1, 2, 3, 5, 8, 12, 20, Infinity];

export class PlayLoop {
  /** @param {() => void} onChange @param {(message: string) => void} onError why play has ended */
  constructor(store, onChange, onError) {
    this.store = store;
    this.onChange = onChange;
    this.onError = onError;
    this.asked = null; // {on}: pressed, and not answered yet
    this.speed = 5;
    this.error = store.play.error;
    this.onHidden = () => document.hidden && this.pause();
    this.recorded = new RecordedPlay(store, () => 1000 / this.speed, onChange);
    this.onStore = ({ detail }) => this.#follow(detail);
    store.addEventListener('change', this.onStore);
    document.addEventListener('visibilitychange', this.onHidden);
  }

  get playing() {
    return this.recorded.playing || (this.asked?.on ?? this.store.play.on);
  }

  toggle() {
    if (this.playing) this.pause();
    else this.start();
  }

  start() {
    if (this.store.isOpened) return this.recorded.start();
    this.store.follow();
    this.#ask(true, 'play', { speed: this.speed === Infinity ? null : this.speed });
  }

  pause() {
    if (this.recorded.playing) this.recorded.stop();
    else if (this.playing) this.#ask(false, 'pause');
  }

  setSpeed(speed) {
    this.speed = speed;
    if (this.playing && !this.recorded.playing) this.start();
  }

  #ask(on, op, args) {
    const asked = (this.asked = { on });
    const settled = () => {
      if (this.asked !== asked) return; // pressed again since
      this.asked = null;
      this.onChange();
    };
    this.store.send(op, args).then(settled, (error) => {
      settled();
      this.onError(error.message);
    });
    this.onChange();
  }

  #follow(changes) {
    if (changes.has('select') && !this.store.sel.follow && !this.recorded.playing) this.pause();
    const { error } = this.store.play;
    if (error && error !== this.error) this.onError(error);
    this.error = error;
  }

  destroy() {
    this.pause();
    this.store.removeEventListener('change', this.onStore);
    document.removeEventListener('visibilitychange', this.onHidden);
  }
}
