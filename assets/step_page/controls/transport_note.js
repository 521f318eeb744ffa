/**
 * One line over the transport bar: that one is looking back, why the run ended and what can be done, or what went wrong.
 *
 * For tests: .transport-note[data-kind=back|finished|error|hint|busy]
 */

import { make, icon, setChildren } from '../drawing/dom.js';
import { FINISH_WORDS } from '../store/roles.js';
import { formatCount } from '../drawing/format.js';

const SAID_FOR_MS = 6000;
const LONG_WORK = {
  prefill: 'Prefilling',
  hello: 'Opening',
  model: 'Loading the model',
  prompt_rows: 'Scoring the prompt',
  check: 'Checking',
};

function busyWords({ text, done, total }) {
  const words = LONG_WORK[text] ?? text.charAt(0).toUpperCase() + text.slice(1);
  return total > 1 ? `${words}: ${formatCount(done)} of ${formatCount(total)} tokens` : `${words} …`;
}

export class TransportNote {
  constructor(store, openStops) {
    this.store = store;
    this.openStops = openStops;
    this.node = make('div.transport-note', { role: 'status', hidden: true });
    this.said = null;
    this.key = '';
  }

  /** Say something for a while. */
  say(words, kind) {
    this.said = { words, kind };
    clearTimeout(this.timer);
    this.timer = setTimeout(() => {
      this.said = null;
      this.#show(this.state);
    }, SAID_FOR_MS);
    this.#show(this.state);
  }

  /** The run is over and somebody pressed Step: draw the eye to the reason. */
  nudge() {
    this.node.animate?.(
      [
        { transform: 'translateX(-50%) translateY(0)' },
        { transform: 'translateX(-50%) translateY(-6px)' },
        { transform: 'translateX(-50%) translateY(0)' },
      ],
      { duration: 240 },
    );
  }

  draw(state) {
    this.state = state;
    this.#show(state);
  }

  #show(state) {
    const { kind, words, actions, key } = this.#content(state ?? {});
    this.node.hidden = !kind;
    this.node.dataset.kind = kind ?? '';
    if (!kind || key === this.key) return;
    this.key = key;
    setChildren(this.node, [make('span', {}, words), ...(actions ?? [])]);
  }

  #content({ back, step, newest }) {
    const { store } = this;
    const { busy } = store;
    const last = store.steps.at(-1);
    if (this.said) return { ...this.said, key: this.said.words };
    if (busy && Object.keys(LONG_WORK).some((op) => store.wire.pending(op)))
      return { kind: 'busy', words: busyWords(busy), actions: [this.#cancel()], key: JSON.stringify(busy) };
    if (back)
      return {
        kind: 'back',
        words: `Looking back at step ${step} of ${newest}. Nothing is changed.`,
        actions: [this.#newest()],
        key: `back ${step} ${newest}`,
      };
    if (last?.finish_reason) {
      return {
        kind: 'finished',
        words: `Stopped: ${FINISH_WORDS[last.finish_reason] ?? last.finish_reason}.`,
        actions: this.#waysOn(last),
        key: `${last.finish_reason} ${newest} ${store.epoch}`,
      };
    }
    return {};
  }

  #cancel() {
    return make('button.small-button', { onclick: () => this.store.send('stop').catch(() => {}) }, 'Cancel');
  }

  #newest() {
    return make(
      'button.small-button',
      { onclick: () => this.store.select({ step: this.store.newest }) },
      icon('last', 14),
      'To the newest',
    );
  }

  /** What can be done about it, for each reason. */
  #waysOn({ finish_reason: reason }) {
    const { store } = this;
    const change = (stop) => store.send('settings', { stop }).catch((error) => this.say(error.message, 'error'));
    const { stop } = store.settings;
    const button = (words, onclick) => make('button.small-button', { onclick }, words);
    const ways = [];
    const most = store.limits.new_tokens || Infinity;
    const raised = Math.min(most, stop.max_new_tokens * 2);
    if (reason === 'max_new_tokens' && raised > stop.max_new_tokens)
      ways.push(
        button(`Raise the limit to ${formatCount(raised)}`, () =>
          change({ ...stop, max_new_tokens: raised }),
        ),
      );
    if (reason === 'disconnect') ways.push(button('Go on', () => store.send('step').catch(() => {})));
    if (reason === 'end_id') ways.push(button('Go on past end tokens', () => change({ ...stop, use_end_ids: false })));
    if (store.newest > 0) ways.push(button('Look one step back', () => store.select({ step: store.newest - 1 })));
    ways.push(button('Stop rules', () => this.openStops()));
    return ways;
  }
}
