/**
 * A wait that says how far it is, how long it has lasted, and can be stopped. Nothing is guessed: where the engine
 * tells no progress, only the time goes on.
 *
 * For tests: .wait-line with .wait-words, .wait-stop
 */

import { say } from '../drawing/say.js';
import { make, setText } from '../drawing/dom.js';
import { formatCount } from '../drawing/format.js';

const WAIT_TICK_MS = 250;

/** "checking the numbers", "reading the prompt's rows: 128 of 400 tokens", "loading x: 40 %" */
export function busyWords({ text, done, total }, names = {}) {
  const words = names[text] ?? text.charAt(0).toUpperCase() + text.slice(1);
  if (total <= 1) return words;
  const isShare = text.startsWith('loading ');
  return isShare ? say('wait_line.share', { words, done: formatCount(done) }) : say('wait_line.of_tokens', { words, done: formatCount(done), n: total });
}

/** The line for one command that was just sent; it ticks until it is taken off the page. */
export function waitLine(store, words) {
  const began = performance.now();
  const said = make('span.wait-words', { role: 'status' });
  const time = make('span.wait-time');
  const stop = make('button.small-button.wait-stop', {
    onclick: () => {
      stop.disabled = true;
      setText(stop, say('wait_line.stopping'));
      store.send('stop', { run: false }).catch(() => {});
    },
  }, say('wait_line.stop'));
  const node = make('p.wait-line', {}, said, time, stop);
  const show = () => {
    const known = store.busy?.total > 1 ? busyWords(store.busy) : words;
    setText(said, known);
    setText(time, `${Math.round((performance.now() - began) / 1000)} s`);
  };
  show();
  const ticking = setInterval(() => (node.isConnected ? show() : clearInterval(ticking)), WAIT_TICK_MS);
  return node;
}
