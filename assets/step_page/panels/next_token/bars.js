/**
 * The likeliest tokens as bars: raw probability behind, probability after a stage in front.
 *
 * Rows keep the order of the raw scores, so nothing jumps while a slider moves. The token that was drawn always
 * has a row, and everything without a row is summed up in "others". A click on a row forces its token.
 */

import { icon, make, setText } from '../../drawing/dom.js';
import { formatCount, formatProb } from '../../drawing/format.js';
import { renderToken } from '../../drawing/pieces.js';
import { namedToken } from '../../drawing/token_names.js';

const FEWEST_BARS = 4;
const MOST_BARS = 40;

function barRow(spec) {
  const row = {
    token: make('span.lp-row-token'), raw: make('i.lp-row-raw'), final: make('i.lp-row-final'),
    rawText: make('span.lp-row-number'), finalText: make('span.lp-row-number.lp-strong'), id: undefined,
  };
  row.node = make(spec, {}, row.token, make('span.lp-row-track', {}, row.raw, row.final), row.rawText, row.finalText, make('span.lp-row-pin'));
  return row;
}

export class BarList {
  /** @param {(id: number) => void} onForce @param {() => void} onResize room for another number of rows */
  constructor(root, onForce, onResize) {
    this.rows = [];
    this.fits = 10;
    this.finalHead = make('span.lp-row-number', {}, 'final');
    this.list = make('div.lp-rows');
    this.others = barRow('div.lp-row.lp-others');
    this.headLeft = make('div.lp-head-left'); // room for the question box, and below for its answer
    this.below = make('div');
    root.append(make('div.lp-row.lp-row-head', {}, this.headLeft, make('span.lp-row-number', {}, 'raw'), this.finalHead, make('span')),
      this.below, this.list, this.others.node);
    this.list.addEventListener('click', (event) => {
      const row = event.target.closest('button.lp-row');
      if (row && row.dataset.chosen !== 'true') onForce(Number(row.dataset.id));
    });
    this.observer = new ResizeObserver(() => {
      const height = this.others.node.offsetHeight;
      const fits = Math.max(FEWEST_BARS, Math.min(MOST_BARS, Math.floor(this.list.clientHeight / Math.max(1, height))));
      if (fits === this.fits) return;
      this.fits = fits;
      onResize();
    });
    this.observer.observe(this.list);
  }

  /**
   * @param view {ids, raw, probs, kept, vocabulary, draw, pieces, stage}: ids and raw by falling raw score, probs aligned
   *   (may be shorter), kept: tokens above zero after the stage, stage: its name
   */
  draw(view) {
    const { draw, ids } = view;
    const count = Math.min(this.fits, ids.length, view.probs.length);
    const picked = Array.from({ length: count }, (_, i) => ({ id: ids[i], raw: view.raw[i], prob: view.probs[i] }));
    if (!picked.some(({ id }) => id === draw.token_id)) picked[count - 1] = this.#outside(view);
    const top = Math.max(...picked.map(({ raw, prob }) => Math.max(raw, prob)), 1e-9);
    while (this.rows.length < picked.length) this.#addRow();
    this.rows.forEach((row, i) => this.#drawRow(row, picked[i], top, view));
    this.#drawOthers(view, picked, top);
    setText(this.finalHead, view.stageShort);
    this.finalHead.title = `after ${view.stage}`;
  }

  /** The chosen token where it is not among the rows that fit. */
  #outside({ draw, ids, raw, probs, isLast, tried }) {
    const at = ids.indexOf(draw.token_id);
    const known = at >= 0 && at < probs.length ? probs[at] : isLast && !tried ? draw.final_prob : null;
    return { id: draw.token_id, raw: at >= 0 ? raw[at] : draw.raw_prob, prob: known, rank: draw.raw_rank };
  }

  #addRow() {
    const row = barRow('button.lp-row');
    row.node.lastChild.append(icon('force', 13));
    this.rows.push(row);
    this.list.append(row.node);
  }

  #drawRow(row, item, top, { draw, pieces, stage }) {
    row.node.hidden = !item;
    if (!item) return;
    const { id, raw, prob, rank } = item;
    if (row.id !== id) {
      row.id = id;
      row.node.dataset.id = id;
      renderToken(row.token, pieces.get(id));
    }
    const chosen = id === draw.token_id;
    row.node.dataset.chosen = String(chosen);
    row.node.dataset.mark = chosen ? (draw.mode === 'forced' ? 'forced' : 'gen') : '';
    row.node.dataset.cut = String(prob === 0);
    this.#bar(row.raw, raw / top);
    this.#bar(row.final, (prob ?? 0) / top);
    setText(row.rawText, formatProb(raw));
    setText(row.finalText, prob === null ? '–' : prob === 0 ? 'cut' : formatProb(prob));
    const after = prob === null ? '' : `, ${prob === 0 ? 'removed' : formatProb(prob)} after ${stage}`;
    const place = rank ? `, rank ${formatCount(rank)} by logit` : '';
    const act = chosen ? (draw.mode === 'forced' ? ' (forced)' : ' (sampled)') : '. Click to force this token';
    const title = `${namedToken(pieces.get(id))}, id ${id}: raw ${formatProb(raw)}${after}${place}${act}`;
    if (row.node.title !== title) row.node.title = title;
  }

  /** Everything without a row of its own. */
  #drawOthers({ vocabulary, kept }, picked, top) {
    const sum = (name) => picked.reduce((total, item) => total + (item[name] ?? 0), 0);
    const raw = Math.max(0, 1 - sum('raw'));
    const keptBeyond = Math.max(0, kept - picked.filter(({ prob }) => prob > 0).length);
    const prob = keptBeyond ? Math.max(0, 1 - sum('prob')) : 0;
    const count = vocabulary - picked.length;
    const row = this.others;
    setText(row.token, `${formatCount(count)} others`);
    this.#bar(row.raw, Math.min(1, raw / top));
    this.#bar(row.final, Math.min(1, prob / top));
    setText(row.rawText, formatProb(raw));
    setText(row.finalText, keptBeyond ? formatProb(prob) : 'cut');
    row.node.dataset.cut = String(!keptBeyond);
    row.node.dataset.over = String(Math.max(raw, prob) > top); // longer than the track: fades out at its end
    row.node.title = `All other tokens together: raw ${formatProb(raw)}; ${formatCount(keptBeyond)} of them kept, ${formatProb(prob)}`;
  }

  #bar(node, share) {
    const scale = `scaleX(${share > 0 ? Math.max(0.004, share).toFixed(4) : 0})`;
    if (node.style.transform !== scale) node.style.transform = scale;
  }

  destroy() {
    this.observer.disconnect();
  }
}
