/**
 * The likeliest tokens as bars: raw probability behind, probability after a stage in front. While other settings are tried,
 * what stands behind is the probability with which the token was sampled. A hundred samples lie under the bars as dots, in
 * the scale of the bars: where as many came as expected, the dots end where the bar ends.
 *
 * Rows keep the order of the raw scores, so nothing jumps while a slider moves. The token that was drawn always
 * has a row, and everything without a row is summed up in "others". A click on a row forces its token.
 */

import { icon, make, setText } from '../../drawing/dom.js';
import { formatCount, formatProb } from '../../drawing/format.js';
import { renderToken } from '../../drawing/pieces.js';
import { say } from '../../drawing/say.js';
import { namedToken } from '../../drawing/token_names.js';
import { HUNDRED } from './trials.js';

const FEWEST_BARS = 4;
const MOST_BARS = 40;

function barRow(spec) {
  const row = {
    token: make('span.lp-row-token'), raw: make('i.lp-row-raw'), final: make('i.lp-row-final'),
    dots: make('i.lp-row-dots'), count: make('b.lp-row-count'), rawText: make('span.lp-row-number'), finalText: make('span.lp-row-number.lp-strong'), id: undefined,
  };
  row.node = make(spec, {}, row.token, make('span.lp-row-place', {}, make('span.lp-row-track', {}, row.raw, row.final, row.dots), row.count), row.rawText, row.finalText, make('span.lp-row-pin'));
  return row;
}

export class BarList {
  /** @param {(id: number) => void} onForce @param {() => void} onResize room for another number of rows */
  constructor(root, onForce, onResize) {
    this.rows = [];
    this.fits = 10;
    this.backHead = make('span.lp-row-number', {}, say('bars.raw'));
    this.finalHead = make('span.lp-row-number', {}, say('bars.final'));
    this.list = make('div.lp-rows');
    this.others = barRow('div.lp-row.lp-others');
    this.headLeft = make('div.lp-head-left'); // room for the question box, and below for its answer
    this.below = make('div');
    this.root = root;
    root.append(make('div.lp-row.lp-row-head', {}, this.headLeft, this.backHead, this.finalHead, make('span')),
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
   * @param view {ids, raw, probs, kept, vocabulary, draw, pieces, stage, was, counts}: ids and raw by falling raw score,
   *   probs aligned (may be shorter), kept: tokens above zero after the stage, stage: its name; was: probabilities with which
   *   the step was sampled, while others are tried, else null; counts: of a hundred samples (Map by id, null: the rest), or null
   */
  draw(view) {
    const { draw, ids, was } = view;
    const count = Math.min(this.fits, ids.length, view.probs.length);
    const picked = Array.from({ length: count }, (_, i) => ({
      id: ids[i], raw: view.raw[i], prob: view.probs[i], back: was ? (was[i] ?? null) : view.raw[i],
    }));
    if (!picked.some(({ id }) => id === draw.token_id)) picked[count - 1] = this.#outside(view);
    const top = Math.max(...picked.map(({ back, prob }) => Math.max(back, prob)), 1e-9);
    while (this.rows.length < picked.length) this.#addRow();
    this.rows.forEach((row, i) => this.#drawRow(row, picked[i], top, view));
    this.#drawOthers(view, picked, top);
    this.root.dataset.behind = was ? 'was' : 'raw';
    setText(this.backHead, was ? say('sampling.was') : say('bars.raw'));
    this.backHead.title = was ? say('sampling.was_title') : '';
    setText(this.finalHead, view.stageShort);
    this.finalHead.title = say('bars.after', { stage: view.stage });
  }

  /** The chosen token where it is not among the rows that fit. */
  #outside({ draw, ids, raw, probs, isLast, was }) {
    const at = ids.indexOf(draw.token_id);
    const known = at >= 0 && at < probs.length ? probs[at] : isLast && !was ? draw.final_prob : null;
    const own = at >= 0 ? raw[at] : draw.raw_prob;
    return { id: draw.token_id, raw: own, prob: known, back: was ? draw.final_prob : own, rank: draw.raw_rank };
  }

  #addRow() {
    const row = barRow('button.lp-row');
    row.node.lastChild.append(icon('force', 13));
    this.rows.push(row);
    this.list.append(row.node);
  }

  #drawRow(row, item, top, { draw, pieces, stage, was, counts }) {
    row.node.hidden = !item;
    if (!item) return;
    const { id, raw, prob, back, rank } = item;
    if (row.id !== id) {
      row.id = id;
      row.node.dataset.id = id;
      renderToken(row.token, pieces.get(id));
    }
    const chosen = id === draw.token_id;
    row.node.dataset.chosen = String(chosen);
    row.node.dataset.mark = chosen ? (draw.mode === 'forced' ? 'forced' : 'gen') : '';
    row.node.dataset.cut = String(prob === 0);
    this.#bar(row.raw, (back ?? 0) / top);
    this.#bar(row.final, (prob ?? 0) / top);
    const sampled = this.#dots(row, counts, id, prob, top);
    setText(row.rawText, back === null ? '–' : formatProb(back));
    setText(row.finalText, prob === null ? '–' : prob === 0 ? say('bars.cut') : formatProb(prob));
    const facts = [
      say('bars.raw_prob', { prob: formatProb(raw) }),
      was && back !== null && say('bars.was_prob', { prob: formatProb(back) }),
      prob !== null && (prob === 0 ? say('bars.removed', { stage }) : say('bars.after_prob', { prob: formatProb(prob), stage })),
      sampled,
      rank && say('bars.rank', { rank: formatCount(rank) }),
    ];
    const act = !chosen ? say('bars.click') : draw.mode === 'forced' ? say('bars.forced') : say('bars.sampled');
    const title = say('bars.row', { token: namedToken(pieces.get(id)), id, facts: facts.filter(Boolean).join(', '), act });
    if (row.node.title !== title) row.node.title = title;
  }

  /** Everything without a row of its own. */
  #drawOthers({ vocabulary, kept, was, counts }, picked, top) {
    const sum = (name) => picked.reduce((total, item) => total + (item[name] ?? 0), 0);
    const back = Math.max(0, 1 - sum('back'));
    const keptBeyond = Math.max(0, kept - picked.filter(({ prob }) => prob > 0).length);
    const prob = keptBeyond ? Math.max(0, 1 - sum('prob')) : 0;
    const count = vocabulary - picked.length;
    const row = this.others;
    setText(row.token, say('bars.others', { count: formatCount(count) }));
    this.#bar(row.raw, Math.min(1, back / top));
    this.#bar(row.final, Math.min(1, prob / top));
    const listed = new Set(picked.map(({ id }) => id));
    const beyond = counts && new Map([[null, [...counts].reduce((total, [id, n]) => total + (listed.has(id) ? 0 : n), 0)]]);
    const sampled = this.#dots(row, beyond, null, prob, top);
    setText(row.rawText, formatProb(back));
    setText(row.finalText, keptBeyond ? formatProb(prob) : say('bars.cut'));
    row.node.dataset.cut = String(!keptBeyond);
    row.node.dataset.over = String(Math.max(back, prob) > top); // longer than the track: fades out at its end
    const before = was ? say('bars.was_prob', { prob: formatProb(back) }) : say('bars.raw_prob', { prob: formatProb(back) });
    const facts = [before, say('bars.others_kept', { n: keptBeyond, prob: formatProb(prob) }), sampled];
    row.node.title = say('bars.others_title', { facts: facts.filter(Boolean).join(', ') });
  }

  /** A dot for each sample of a token, a hundredth of the bars' scale apart. @returns {string} the same in words */
  #dots(row, counts, id, prob, top) {
    const count = counts?.get(id) ?? 0;
    row.node.dataset.samples = counts ? String(count) : '';
    setText(row.count, counts ? String(count) : '');
    row.dots.hidden = !count;
    if (!counts) return '';
    row.dots.style.width = `${((100 * count) / HUNDRED / top).toFixed(3)}%`;
    row.dots.style.backgroundSize = `${(100 / Math.max(1, count)).toFixed(3)}% 100%`;
    return say('sampling.count', { count, of: HUNDRED, expected: prob === null ? '–' : (HUNDRED * prob).toFixed(1) });
  }

  #bar(node, share) {
    const scale = `scaleX(${share > 0 ? Math.max(0.004, share).toFixed(4) : 0})`;
    if (node.style.transform !== scale) node.style.transform = scale;
  }

  destroy() {
    this.observer.disconnect();
  }
}
