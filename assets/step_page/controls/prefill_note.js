/**
 * What the prefill did, in the scrubber's place: there is one step, so nothing to scrub, until the next step takes it away.
 * While a step that was recorded earlier is shown, it says so, and why.
 *
 * Somebody who has just come may take the tour from here.
 *
 * For tests: .prefill-note[data-kind=prefill|recorded], .take-tour
 */

import { make, setChildren } from '../drawing/dom.js';
import { formatCount } from '../drawing/format.js';
import { renderToken } from '../drawing/pieces.js';
import { readProgress } from '../lessons/lesson_progress.js';
import { say, sayNodes } from '../drawing/say.js';
import { drawnPosition } from '../store/roles.js';
import { tokensRead } from '../panels/time/prefill.js';

/** How the prompt came into the cache: "The model read all 3 tokens of the prompt in one forward pass." */
export function prefillWords(step) {
  const fed = step.input_ids.length;
  const read = tokensRead(step);
  if (read <= 0) return say('prefill.shared_whole', { n: fed });
  const passes = say('prefill.passes', { n: step.forwards });
  if (read < fed) return say('prefill.shared', { n: fed - read, rest: formatCount(read), passes });
  return say('prefill.read', { n: fed, passes });
}

export class PrefillNote {
  /** @param {() => void} onTour */
  constructor(store, onTour) {
    this.store = store;
    this.node = make('p.prefill-note', { hidden: true });
    this.key = '';
    const button = make('button.small-button.take-tour', { title: say('lesson.tour_title'), onclick: onTour }, say('lesson.tour'));
    this.press = make('b.prefill-next', {}, say('prefill.press'));
    this.tour = make('span.prefill-tour', {}, say('lesson.or_tour'), ' ', button);
  }

  draw() {
    const { store } = this;
    const { kind, key, nodes } = store.isOpened ? {} : store.recording ? this.#recorded() : this.#prefill(store.steps[0]);
    this.node.hidden = !kind;
    this.press.hidden = Boolean(store.lesson); // a lesson says itself what comes next
    this.tour.hidden = Boolean(store.lesson) || readProgress().tour?.done === true;
    this.node.dataset.kind = kind ?? '';
    this.node.parentElement.classList.toggle('has-note', Boolean(kind));
    if (!kind || key === this.key) return;
    this.key = key;
    setChildren(this.node, nodes());
    this.node.title = [...this.node.childNodes].filter((node) => node !== this.tour && node !== this.press).map((node) => node.textContent).join(' ');
  }

  #recorded() {
    const { recording, loading, place } = this.store;
    const why = loading ? say('first.loading') : place ? say('first.place') : '';
    return { kind: 'recorded', key: `${recording.model} ${why}`, nodes: () => [make('b', {}, say('first.recorded', { model: recording.model })), ' ', why] };
  }

  /** Where the run is the prefill alone and goes on. */
  #prefill(step) {
    const { store } = this;
    if (!step || store.newest > 0 || step.finish_reason || step.forced) return {};
    const piece = store.tokens[drawnPosition(store, 0)] ?? store.pieces.get(step.draw.token_id);
    const then = (token) => (tokensRead(step) > 0 ? sayNodes('prefill.columns', { n: step.kv_len, token }) : sayNodes('prefill.kept_row', { token }));
    return {
      kind: 'prefill',
      key: store.keyOf(step),
      nodes: () => [
        make('span.prefill-what', {}, make('b', {}, say('prefill.name')), ' ', prefillWords(step)),
        make('span.prefill-then', {}, ...then(renderToken(make('b'), piece))),
        this.press,
        this.tour,
      ],
    };
  }
}
