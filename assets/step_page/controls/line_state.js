/**
 * What stands between this page and a run: no model yet, no place in the class, a lost connection. In words, with what
 * one can do. While there is nothing to look at it is a card over the panels, afterwards a line in the top bar. Over a step
 * that was recorded earlier, only what ends the way to a run is a card.
 *
 * For tests: .line-card, .line-bar [data-kind=connecting|blocked|lost|ended|loading|failed|place], .line-progress,
 * .line-again, .line-reload
 */

import { say } from '../drawing/say.js';
import { make, setChildren, setText } from '../drawing/dom.js';

const LINE_TICK_MS = 250;
const TRIES_BEFORE_DOUBT = 3;
const ALARMING = ['blocked', 'ended', 'failed'];

/** "You are next." "You are number 3 in line." */
function placeWords({ place }) {
  return place === 1 ? say('line_state.next') : say('line_state.number', { place });
}

/** @returns {{kind: string, title: string, words: string, hint?: string, fraction?: number}|null} null: nothing is amiss */
function lineContent({ line, loading, failed, place, model }) {
  if (line.state === 'ended') return { kind: 'ended', title: say('line_state.ended'), words: line.words };
  if (!line.wasOpen && line.tries >= TRIES_BEFORE_DOUBT) return blockedContent(line.address);
  if (line.state === 'lost' && line.wasOpen) return { kind: 'lost', title: say('line_state.lost'), words: say('line_state.again') };
  if (failed) return { kind: 'failed', title: say('line_state.no_model'), words: failed };
  if (place) {
    const hint = say('line_state.keep_open');
    return { kind: 'place', title: say('line_state.full'), words: placeWords(place), hint };
  }
  if (loading) {
    const hint = say('line_state.first_time');
    const title = loading.model ? `Loading ${loading.model}` : say('line_state.preparing');
    return { kind: 'loading', title, words: loading.text ?? '', hint, fraction: loading.fraction ?? 0 };
  }
  return model ? null : { kind: 'connecting', title: say('line_state.loupe'), words: say('line_state.connecting') };
}

function blockedContent(address) {
  const words =
    say('line_state.blocked', { address: new URL(address).pathname });
  return { kind: 'blocked', title: say('line_state.none'), words };
}

export class LineState {
  /** @param {HTMLElement} panels what the card covers */
  constructor(panels, store) {
    this.store = store;
    this.panels = panels;
    this.bar = lineParts('div.line-bar');
    this.card = lineParts('div.line-card');
    this.again = make('button.line-again', { onclick: () => store.line.retry() }, say('line_state.try_again'));
    this.reload = make('button.line-reload', { onclick: () => location.reload() }, say('line_state.reload'));
    panels.append(this.card.node);
  }

  draw() {
    const { store } = this;
    const content = lineContent(store);
    const isInTheWay = store.recording ? ALARMING.includes(content?.kind) : !store.steps.length;
    const isBar = content?.kind === 'lost' || !isInTheWay;
    this.#fill(this.bar, isBar ? content : null);
    this.#fill(this.card, isBar ? null : content);
    this.panels.classList.toggle('is-covered', Boolean(content) && !isBar);
    clearTimeout(this.ticking);
    if (content?.kind === 'lost') this.ticking = setTimeout(() => this.draw(), LINE_TICK_MS);
  }

  #fill(parts, content) {
    parts.node.hidden = !content;
    if (!content) return;
    const { kind, title, words, hint, fraction } = content;
    parts.node.dataset.kind = kind;
    parts.said.setAttribute('role', ALARMING.includes(kind) ? 'alert' : 'status');
    setText(parts.title, title);
    setText(parts.words, words);
    setText(parts.hint, kind === 'lost' ? this.#wait() : (hint ?? ''));
    parts.progress.hidden = fraction === undefined;
    if (fraction) parts.progress.value = fraction;
    else parts.progress.removeAttribute('value'); // how far it is, is not known yet
    const ways = { failed: [this.again], ended: [this.reload] }[kind] ?? [];
    setChildren(parts.ways, ways);
  }

  /** How long until the next attempt, if that can be read at all. */
  #wait() {
    const seconds = Math.ceil((this.store.line.retryAt - Date.now()) / 1000);
    return seconds > 0 ? say('line_state.in_seconds', { n: seconds }) : '…';
  }

  destroy() {
    clearTimeout(this.ticking);
  }
}

/** What is read aloud stands in `said`; what changes all the time, beside it. */
function lineParts(spec) {
  const title = make('b.line-title');
  const words = make('span.line-words');
  const said = make('p.line-said', {}, title, ' ', words);
  const progress = make('progress.line-progress', { max: 1, 'aria-label': say('line_state.loading') });
  const hint = make('span.line-hint');
  const ways = make('span.line-ways');
  return { node: make(spec, { hidden: true }, said, progress, hint, ways), said, title, words, hint, progress, ways };
}
