/**
 * What the five beats of a slow step show, each from the step's own record: the newest token goes in, the layers run, its
 * key and value join the cache, its query weighs the keys, and the next token is picked.
 *
 * Marks are laid over the page and taken away again by `clear`; the panels draw themselves, once a beat tells them.
 */

import { attentionLines, clearLines, linesLayer } from '../../drawing/attention_lines.js';
import { make } from '../../drawing/dom.js';
import { reducedMotion } from '../../drawing/canvas.js';
import { formatCount, formatProb } from '../../drawing/format.js';
import { quotedToken } from '../../drawing/pieces.js';
import { say } from '../../drawing/say.js';
import { HEAD_MEAN } from '../../store/attention_data.js';
import { flyToken } from '../tokens/fly.js';

const FLIGHT_IN_MS = 700;
const SWEEP_MS = 950;
const COLUMN_MS = 700;
const NEEDLE_MS = 800;
const FLIGHT_OUT_MS = 500;

export class TurnBeats {
  /** @param parts {stations, strip, kv, attention, next} of the page @param {import('../../controls/presenter.js').Presenter} presenter */
  constructor(root, store, parts, presenter) {
    Object.assign(this, { root, store, parts, presenter });
    this.tell = () => {}; // a part may know of the step; set by whoever runs the beats
    this.marks = [];
    this.lines = linesLayer(root);
    this.list = [
      { name: 'in', ms: 900, begin: (step) => this.#in(step) },
      { name: 'layers', ms: SWEEP_MS + 150, begin: (step) => this.#layers(step) },
      { name: 'cache', ms: 950, begin: () => this.#cache() },
      { name: 'attention', ms: 1250, begin: (step) => this.#attention(step) },
      { name: 'sample', ms: 1600, begin: () => this.#logits(), then: { at: 0.55, run: (step) => this.#sample(step) } },
    ];
  }

  #find(selector) {
    return this.root.querySelector(selector);
  }

  /** The station a beat speaks of and the panel that shows it; stations before it have the step's numbers. */
  #light(station, panel, until) {
    for (const node of this.root.querySelectorAll('.is-lit')) node.classList.remove('is-lit');
    this.#find(`.station[data-station="${station}"]`).classList.add('is-lit');
    if (panel) {
      this.#find(`.panel-${panel}`).classList.add('is-lit');
      this.presenter.lend(panel);
    }
    this.parts.stations.draw(new Set(['steps']), until);
  }

  #chip(position) {
    return this.#find(`.chip[data-position="${position}"]`);
  }

  /** Where a chip stands, or null where it is folded away or scrolled out of its part of the line. */
  #chipInView(position) {
    const chip = this.#chip(position);
    if (!chip) return null;
    const box = chip.getBoundingClientRect();
    const part = chip.closest('.strip-part').getBoundingClientRect();
    const middle = (box.left + box.right) / 2;
    return middle > part.left && middle < part.right ? box : null;
  }

  #in(step) {
    const position = step.positions.at(-1);
    this.#light('in', null, 1);
    this.#chip(position)?.classList.add('is-fed');
    flyToken(this.root, this.#find(`.chip[data-position="${position}"] .chip-text`), this.#find('[data-station="in"] .station-main'), FLIGHT_IN_MS);
    const token = quotedToken(this.store.tokens[position]);
    return say('turn.in', { token, id: step.input_ids.at(-1), position });
  }

  #layers() {
    this.#light('forward', 'kv', 2);
    const layers = this.store.model.num_layers;
    const { kv, attention } = this.parts;
    for (const grid of [kv.grid(), attention.grid()]) if (grid) this.#sweep(grid, layers);
    return say('turn.layers', { layers });
  }

  /** A bar that goes down the rows of a grid, a layer at a time. */
  #sweep({ host, left, top, width, height }, layers) {
    const row = height / layers;
    const count = make('b');
    const bar = make('i.layer-sweep', { 'aria-hidden': 'true', style: `left:${left}px;top:${top}px;width:${width}px;height:${row}px` }, count);
    host.append(bar);
    this.marks.push(bar);
    const at = (layer) => {
      bar.style.transform = `translateY(${layer * row}px)`;
      count.textContent = say('turn.layer', { layer });
    };
    at(reducedMotion() ? layers - 1 : 0);
    if (reducedMotion()) return;
    const began = performance.now();
    const tick = () => {
      at(Math.min(layers - 1, Math.floor(((performance.now() - began) / SWEEP_MS) * layers)));
      if (bar.isConnected) requestAnimationFrame(tick);
    };
    tick();
  }

  #cache() {
    this.#clearMarks();
    this.#light('forward', 'kv', 2);
    this.tell(this.parts.kv, { slideMs: COLUMN_MS, namesNext: false });
    return say('turn.cache');
  }

  #attention(step) {
    this.#light('forward', 'attention', 2);
    const { attention } = this.parts;
    this.tell(attention);
    const keys = formatCount(step.kv_len);
    const { layer, head, row } = attention.weights();
    if (!row) return say('turn.attention', { keys });
    const boxes = Array.from(row, (_, position) => this.#chipInView(position));
    const query = boxes[step.kv_len - 1];
    if (query) attentionLines(this.lines, query, boxes, row);
    const most = row.indexOf(Math.max(...row));
    return say('turn.attention_most', {
      keys,
      where: head === HEAD_MEAN ? say('turn.mean', { layer }) : say('turn.head', { layer, head }),
      token: quotedToken(this.store.tokens[most]),
      weight: formatProb(row[most]),
    });
  }

  #logits() {
    clearLines(this.lines);
    this.#light('logits', 'next', 3);
    this.#find('.panel-next').classList.toggle('is-choosing', !reducedMotion());
    this.tell(this.parts.next, { needleMs: NEEDLE_MS });
    return say('turn.logits', { count: formatCount(this.store.model.vocab_size) });
  }

  #sample(step) {
    const { draw } = step;
    this.#find('.panel-next').classList.remove('is-choosing');
    this.#light('sample', 'next', 4);
    this.tell(this.parts.strip);
    this.parts.kv.draw(new Set()); // which token is not in the cache yet can be said now
    flyToken(this.root, this.#find('.panel-next [data-chosen="true"] .lp-row-token'), this.#find('.chip[data-standing="drawn"] .chip-text'), FLIGHT_OUT_MS);
    const token = quotedToken(this.store.tokens.at(-1));
    const prob = formatProb(draw.final_prob);
    return draw.u === null ? say('turn.sample', { token, prob }) : say('turn.sample_u', { token, prob, u: draw.u.toFixed(3) });
  }

  #clearMarks() {
    for (const mark of this.marks.splice(0)) mark.remove();
  }

  /** Nothing of it stays. */
  clear() {
    this.#clearMarks();
    clearLines(this.lines);
    for (const name of ['is-lit', 'is-fed', 'is-choosing']) for (const node of this.root.querySelectorAll(`.${name}`)) node.classList.remove(name);
    this.parts.kv.draw(new Set());
    for (const ghost of this.root.querySelectorAll('.flying')) ghost.remove();
    this.presenter.lend(null);
  }
}
