/**
 * Point at a token, tap it, or bring the focus to it: lines run to the tokens it read, in the layer and head that the attention
 * panel shows. Weights that are not here are asked for as the panel asks, once the pointer has rested.
 *
 * A token was a query in the step that fed it: the last prompt token in step 0, each later one in the step after it was
 * drawn. Tokens of the prompt before the last have no row of their own, unless the prompt's triangle has come.
 *
 * For tests: svg.attention-lines path, .lines-said[data-position]
 */

import { make, setText } from '../../drawing/dom.js';
import { attentionLines, clearLines, linesLayer } from '../../drawing/attention_lines.js';
import { formatProb } from '../../drawing/format.js';
import { say } from '../../drawing/say.js';
import { HEAD_MEAN } from '../../store/attention_data.js';

const LINES_SETTLE_MS = 120; // a pointer on its way elsewhere draws nothing
const DEEPEST_LINE = 84;

/** The step in which the token at a position asked, or null: it was not fed yet, or with others of the prompt. */
export function stepThatAsked(position, promptLength, newest) {
  const step = position - promptLength + 1;
  return step >= 0 && step <= newest ? step : null;
}

/** Somebody asked the browser to spare data: nothing is drawn or fetched that was not asked for. */
function sparesData() {
  return Boolean(navigator.connection?.saveData) || matchMedia('(prefers-reduced-data: reduce)').matches;
}

export class StripLines {
  /** @param {{rows: AttentionRows, shown: {layer, head}}} attention the panel, whose choice this follows */
  constructor(root, strip, store, attention) {
    this.strip = strip;
    this.store = store;
    this.attention = attention;
    this.layer = linesLayer(root);
    this.said = make('p.lines-said', { hidden: true, 'aria-live': 'polite' });
    root.append(this.said);
    this.listeners = {
      pointerover: (event) => event.pointerType !== 'touch' && this.#point(event.target.closest('.chip')),
      pointerleave: () => this.#point(null),
      click: (event) => event.pointerType === 'touch' && this.#point(event.target.closest('.chip')), // after the finger has left
      focusin: (event) => this.#point(event.target.closest('.chip:focus-visible')),
      focusout: () => this.#point(null),
      scroll: () => this.#draw(),
    };
    for (const [name, listener] of Object.entries(this.listeners)) strip.addEventListener(name, listener, name === 'scroll');
    this.onPress = (event) => event.composedPath().includes(strip) || this.#point(null);
    document.addEventListener('pointerdown', this.onPress, true);
  }

  #point(chip) {
    const position = chip && !sparesData() ? Number(chip.dataset.position) : null;
    if (position === this.position) return;
    this.position = position;
    clearTimeout(this.settling);
    if (position === null) this.#clear();
    else this.settling = setTimeout(() => this.#draw(true), LINES_SETTLE_MS);
  }

  /** @param {Set<string>} changes */
  draw(changes) {
    if (this.drawn === undefined) return;
    if (['select', 'attention', 'tokens', 'steps', 'theme', 'session'].some((name) => changes.has(name))) this.#draw(true);
  }

  #clear() {
    this.drawn = undefined;
    clearLines(this.layer);
    this.said.hidden = true;
  }

  #draw(asks = false) {
    const { store, position } = this;
    const chip = position === null || position === undefined ? null : this.strip.querySelector(`.chip[data-position="${position}"]`);
    if (!chip) return this.#clear();
    this.drawn = position;
    const { layer, head } = this.attention.shown;
    const where = head === HEAD_MEAN ? say('lines.mean', { layer, heads: store.model.num_heads }) : say('lines.head', { layer, head });
    const { row, words } = this.#row(position, layer, head, asks);
    if (!row) {
      clearLines(this.layer);
      return this.#say(chip, words, 6);
    }
    const { boxes, weights } = this.#boxes(row);
    attentionLines(this.layer, seenBox(chip), boxes, weights, { deepest: DEEPEST_LINE });
    return this.#say(chip, say('lines.reads', { where, most: this.#most(row) }));
  }

  /** The weights of the token's own row, or the words that say why there are none. */
  #row(position, layer, head, asks) {
    const { store } = this;
    const { rows } = this.attention;
    const index = stepThatAsked(position, store.promptLength, store.newest);
    if (index === null) {
      if (position >= store.promptLength) return { words: say('lines.not_fed') };
      const map = head === HEAD_MEAN ? null : rows.triangle(layer, head, store.promptLength);
      return map && !map.pooled ? { row: map.row(position) } : { words: say('lines.in_prompt') };
    }
    const step = store.steps[index];
    const row = rows.row(step, layer, head);
    if (!row && asks) rows.request(step, layer);
    return row ? { row } : { words: rows.state(step, layer) === 'failed' ? rows.message(step) : say('lines.asked', { step: index }) };
  }

  #most(row) {
    const key = row.indexOf(Math.max(...row));
    return `${this.strip.querySelector(`.chip[data-position="${key}"] .chip-text`)?.textContent ?? key} ${formatProb(row[key])}`;
  }

  /** A box and a weight for each chip and each fold; what is folded away counts together. */
  #boxes(row) {
    const boxes = [];
    const weights = [];
    for (const node of this.strip.querySelectorAll('.chip, .fold')) {
      const from = Number(node.dataset.position ?? node.dataset.from);
      const to = node.dataset.to ? Number(node.dataset.to) : from + 1;
      if (from >= row.length) continue;
      boxes.push(seenBox(node));
      weights.push(row.subarray(from, Math.min(to, row.length)).reduce((sum, weight) => sum + weight, 0));
    }
    return { boxes, weights };
  }

  /** Beside the chip, `below` it by so many pixels. */
  #say(chip, words, below = DEEPEST_LINE) {
    const { left, bottom } = seenBox(chip);
    const origin = this.layer.getBoundingClientRect();
    setText(this.said, words);
    this.said.hidden = false;
    this.said.dataset.position = this.position;
    const widest = origin.width - this.said.offsetWidth;
    this.said.style.left = `${Math.max(0, Math.min(left - origin.left, widest))}px`;
    this.said.style.top = `${bottom - origin.top + below}px`;
  }

  destroy() {
    clearTimeout(this.settling);
    document.removeEventListener('pointerdown', this.onPress, true);
    for (const [name, listener] of Object.entries(this.listeners)) this.strip.removeEventListener(name, listener, name === 'scroll');
  }
}

/** A chip's box; where its part of the strip is scrolled past it, the edge at which it went out of view. */
function seenBox(node) {
  const { left, top, width, height } = node.getBoundingClientRect();
  const view = node.parentElement.getBoundingClientRect();
  const middle = left + width / 2;
  const seen = Math.max(view.left, Math.min(middle, view.right));
  return { left: left + (seen - middle), top, width, height, bottom: top + height };
}
