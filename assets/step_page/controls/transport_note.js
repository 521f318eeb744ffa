/**
 * One line over the transport bar: that one is looking back, why the run ended and what can be done, or what went wrong.
 *
 * What an act dropped can be had back from here until the next step; a prompt that was changed is said here, with Prefill.
 *
 * For tests: .transport-note[data-kind=back|finished|error|hint|busy|changed|offer], .undo, .prefill-it
 */

import { say } from '../drawing/say.js';
import { make, icon, setChildren, setText } from '../drawing/dom.js';
import { FINISH_WORDS } from '../store/roles.js';
import { formatCount } from '../drawing/format.js';
import { busyWords } from './wait_line.js';

const SAID_FOR_MS = 6000;
const LONG_WORK = {
  prefill: say('transport_note.prefilling'),
  hello: say('transport_note.opening'),
  model: say('transport_note.loading'),
  prompt_rows: say('transport_note.predicting'),
  check: say('transport_note.checking'),
  layer_times: say('transport_note.replaying'),
  undo: say('transport_note.bringing_back'),
};

/** What an act dropped, by its name. */
const DROPPED_WORDS = {
  force: () => say('transport_note.token_forced'),
  rewind: () => say('transport_note.rewound'),
  prefill: (steps) => say('transport_note.new_run', { n: steps }),
  reset: () => say('transport_note.dropped'),
  undo: () => say('transport_note.brought_back'),
};

export class TransportNote {
  /** @param {{changed: boolean, prefill: () => Promise<void>}} prompt @param {() => void} openStops */
  constructor(store, prompt, openStops) {
    this.store = store;
    this.prompt = prompt;
    this.openStops = openStops;
    this.offered = null; // {words, actions, at}: ways to go on, until the next step
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

  /** Offer ways to go on from here. They go with the next step, and with whatever replaces this run. */
  offer(words, actions) {
    this.offered = { words, actions, at: this.#here(), key: `offer ${words}` };
    this.#show(this.state);
  }

  #here() {
    const { store } = this;
    return `${store.session?.sid}/${store.session?.branch}/${store.epoch}/${store.newest}`;
  }

  /** Something was dropped while we looked: Undo is offered. What was dropped before this page came is not news,
   * nor is a run that nobody had stepped: Z brings it back all the same. */
  #takeUndo() {
    const { undo, busy } = this.store;
    const number = undo?.number ?? null;
    if (busy || undo === undefined || number === this.undoNumber) return;
    const isNews = this.undoNumber !== undefined && number !== null && !(undo.act === 'prefill' && undo.steps === 1);
    this.undoNumber = number;
    if (!isNews) return;
    this.offered = { words: DROPPED_WORDS[undo.act](undo.steps), actions: [this.#undo()], at: this.#here(), key: `undo ${undo.number}` };
  }

  #undo() {
    const failed = (error) => this.say(error.message, 'error');
    return make('button.small-button.undo', { title: 'Z', onclick: () => this.store.send('undo').catch(failed) }, icon('rewind', 14), say('transport_note.undo'));
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
    this.#takeUndo();
    if (this.offered && this.offered.at !== this.#here()) this.offered = null;
    const { kind, words, actions, key } = this.#content(state ?? {});
    this.node.hidden = !kind;
    this.node.dataset.kind = kind ?? '';
    if (!kind || key === this.key) return;
    this.key = key;
    const said = make('span');
    setText(said, words);
    setChildren(this.node, [said, ...(actions ?? [])]);
  }

  #content({ back, step, newest }) {
    const { store } = this;
    const { busy } = store;
    const last = store.steps.at(-1);
    if (this.said) return { ...this.said, key: this.said.words };
    if (busy && (!store.how || Object.keys(LONG_WORK).some((op) => store.line.pending(op))))
      return { kind: 'busy', words: `${busyWords(busy, LONG_WORK)} …`, actions: [this.#cancel()], key: JSON.stringify(busy) };
    if (back && !store.isOpened && !store.following.lead)
      return {
        kind: 'back',
        words: say('transport_note.looking_back', { step, newest }),
        actions: [this.#newest()],
        key: `back ${step} ${newest}`,
      };
    const offer = this.offered;
    if (this.prompt.changed)
      return {
        kind: 'changed',
        words: say('transport_note.prompt_changed'),
        actions: [make('button.small-button.prefill-it', { onclick: () => this.prompt.prefill() }, say('transport_note.prefill_new'))],
        key: 'changed',
      };
    if (last?.finish_reason && !store.isOpened) {
      return {
        kind: 'finished',
        words: say('transport_note.stopped', { why: FINISH_WORDS[last.finish_reason] ?? last.finish_reason }),
        actions: [...this.#waysOn(last), ...(offer?.actions ?? [])],
        key: `${last.finish_reason} ${newest} ${store.epoch} ${offer?.key}`,
      };
    }
    return offer ? { kind: 'offer', ...offer } : {};
  }

  #cancel() {
    return make('button.small-button', { onclick: () => this.store.send('stop', { run: false }).catch(() => {}) }, say('transport_note.stop'));
  }

  #newest() {
    return make(
      'button.small-button',
      { onclick: () => this.store.select({ step: this.store.newest }) },
      icon('last', 14),
      say('transport_note.newest'),
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
        button(say('transport_note.raise_limit', { limit: formatCount(raised) }), () =>
          change({ ...stop, max_new_tokens: raised }),
        ),
      );
    if (reason === 'disconnect') ways.push(button(say('transport_note.go_on'), () => store.send('step').catch(() => {})));
    if (reason === 'end_id') ways.push(button(say('transport_note.past_eos'), () => change({ ...stop, use_end_ids: false })));
    if (store.newest > 0) ways.push(button(say('transport_note.one_back'), () => store.select({ step: store.newest - 1 })));
    ways.push(button(say('transport_note.stop_rules'), () => this.openStops()));
    return ways;
  }
}
