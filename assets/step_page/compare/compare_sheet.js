/**
 * Two branches side by side: their tokens from where they part, both distributions at one step, what each gave to the
 * other's token, and how far apart they are. Looking moves neither; Step both draws the next token of each.
 *
 * For tests: .compare-sheet[data-step], .compare-step, .compare-both, .compare-chip[data-differs], .compare-row[data-id],
 * .compare-fact, .compare-said
 */

import { make, setText } from '../drawing/dom.js';
import { formatBits, formatProb } from '../drawing/format.js';
import { openSheet } from '../drawing/overlay.js';
import { quotedToken, renderToken } from '../drawing/pieces.js';
import { say } from '../drawing/say.js';
import { tableTwin } from '../drawing/table_twin.js';

const SHOWN_EACH = 6; // likeliest tokens of each branch
const BEFORE = 3; // tokens that both share, before they part
const COMPARED = ['one', 'other'];

/** Compare the branch on screen with another, in a sheet. */
export function openCompare(page, store, branch) {
  const view = new CompareView(store, branch);
  const { dialog } = openSheet(page, { title: say('compare.title'), hint: say('compare.hint'), name: 'compare', wide: true }, (body) => body.append(view.node));
  dialog.addEventListener('close', () => view.end());
  return view;
}

class CompareView {
  constructor(store, branch) {
    Object.assign(this, { store, branch, step: null, asked: 0 });
    this.said = make('p.compare-said.error-words', { role: 'alert' });
    this.range = make('input.compare-step', { type: 'range', min: 0, step: 1, 'aria-label': say('compare.step_label'), oninput: () => this.#look(Number(this.range.value)) });
    this.counter = make('output');
    this.both = make('button.primary.compare-both', { title: say('compare.both_title'), onclick: () => this.#stepBoth() }, say('compare.both'));
    this.together = make('small.compare-together', { role: 'status' });
    this.strips = make('div.compare-strips', { role: 'group', 'aria-label': say('compare.strips'), tabIndex: 0 });
    this.facts = make('div.compare-facts');
    this.bars = make('div.compare-bars');
    const bar = make('div.compare-bar', {}, make('label', {}, this.counter, this.range), this.both, this.together);
    this.node = make('div.compare-sheet', {}, bar, this.strips, this.facts, this.bars, this.said);
    this.#look(null);
  }

  end() {
    this.asked += 1; // an answer that still comes is not drawn
  }

  /** How many steps both have, less one. */
  get #last() {
    const { branches, branch } = this.store.session;
    const steps = branches.filter(({ id }) => id === branch || id === this.branch).map((one) => one.steps);
    return Math.min(...steps) - 1;
  }

  /** @param {number|null} step null: the newest that both have */
  async #look(step) {
    const asked = (this.asked += 1);
    const wanted = Math.min(step ?? this.#last, this.#last);
    try {
      const found = await this.store.send('compare', { branch: this.branch, step: wanted });
      if (asked === this.asked) this.#draw(found);
    } catch (error) {
      setText(this.said, error.message);
    }
  }

  async #stepBoth() {
    this.both.disabled = true;
    setText(this.said, '');
    try {
      const { steps } = await this.store.send('step_both', { branch: this.branch });
      setText(this.together, steps.every((one) => one.batch_size > 1) ? say('compare.one_forward') : say('compare.two_forwards'));
      await this.#look(null);
    } catch (error) {
      setText(this.said, error.message);
    }
    this.both.disabled = false;
  }

  #draw(found) {
    this.step = this.node.dataset.step = found.step;
    setText(this.said, '');
    this.range.max = this.#last;
    this.range.value = found.step;
    setText(this.counter, say('compare.step_of', { step: found.step, last: this.#last }));
    this.#drawStrips(found);
    this.#drawFacts(found);
    this.#drawBars(found);
  }

  /** Token under token, from shortly before the first that differs. */
  #drawStrips({ one, other, parts_at: parts, step }) {
    const from = Math.max(0, parts - BEFORE);
    const length = Math.max(one.tokens.length, other.tokens.length);
    const drawnAt = this.store.promptLength + step;
    const columns = Array.from({ length: length - from }, (_, i) => from + i);
    this.strips.style.setProperty('--columns', columns.length);
    const row = (side) => [
      make('b.compare-name', { data: { side } }, side === 'one' ? one.label : other.label),
      ...columns.map((position) => this.#chip((side === 'one' ? one : other).tokens[position], position, { parts, drawnAt, side })),
    ];
    const shared = from ? make('p.compare-shared', {}, say('compare.shared', { n: parts })) : null;
    this.strips.replaceChildren(...(shared ? [shared] : []), make('div.compare-grid', {}, ...row('one'), ...row('other')));
  }

  #chip(token, position, { parts, drawnAt, side }) {
    if (!token) return make('span.compare-chip.is-missing', {}, '');
    const chip = make('span.compare-chip', { title: quotedToken(token), data: { side, differs: position >= parts, drawn: position === drawnAt } });
    return renderToken(chip, token);
  }

  #drawFacts(found) {
    const { one, other, raw, final } = found;
    const piece = (side) => quotedToken(this.store.pieces.get(found[side].token_id) ?? found[side].tokens.find(({ id }) => id === found[side].token_id));
    const gave = (mine, theirs) =>
      say('compare.gave', {
        mine: found[mine].label, token: piece(mine), p: formatProb(found[mine].final_prob), theirs: found[theirs].label,
        q: formatProb(found[theirs].final_prob_of_other),
      });
    const same = one.token_id === other.token_id;
    const ways = ({ one_other: there, other_one: back }) => ({ there: this.#bits(there), back: this.#bits(back), one: one.label, other: other.label });
    this.facts.replaceChildren(
      make('p.compare-fact', {}, same ? say('compare.same', { token: piece('one') }) : gave('one', 'other')),
      ...(same ? [] : [make('p.compare-fact', {}, gave('other', 'one'))]),
      make('p.compare-fact', { data: { kl: 'raw' } }, say('compare.kl_raw', ways(raw))),
      make('p.compare-fact', { data: { kl: 'final' } }, say('compare.kl_final', ways(final))),
    );
  }

  #bits({ kl_bits: bits, unshared }) {
    return bits === null ? say('compare.infinite', { p: formatProb(unshared) }) : formatBits(bits);
  }

  /** The likeliest tokens of either, with the probability that each gives them after sampling's stages. */
  #drawBars(found) {
    const ids = [...new Set(COMPARED.flatMap((side) => [...found[side].planes.cand_ids.data.slice(0, SHOWN_EACH), found[side].token_id]))];
    const of = (side, id) => {
      const at = found[side].planes.cand_ids.data.indexOf(id);
      const { shape, data } = found[side].planes.stage_probs;
      if (at >= 0 && at < shape[1]) return data[(shape[0] - 1) * shape[1] + at];
      if (id === found[side].token_id) return found[side].final_prob;
      return id === found[side === 'one' ? 'other' : 'one'].token_id ? found[side].final_prob_of_other : null;
    };
    const rows = ids.map((id) => ({ id, one: of('one', id), other: of('other', id) }));
    rows.sort((a, b) => (b.one ?? 0) + (b.other ?? 0) - (a.one ?? 0) - (a.other ?? 0));
    const labels = [say('compare.token'), found.one.label, found.other.label];
    const values = rows.map(({ id, one, other }) => [quotedToken(this.store.pieces.get(id)), ...[one, other].map((p) => (p === null ? say('compare.not_kept') : formatProb(p)))]);
    const details = make('details.compare-table', {}, make('summary', {}, say('panel.table')), tableTwin(labels, values, say('compare.caption', { step: found.step })));
    this.bars.replaceChildren(make('h3', {}, say('compare.distributions')), ...rows.map((row) => this.#bar(found, row)), details);
  }

  #bar(found, { id, one, other }) {
    const name = renderToken(make('span.compare-token'), this.store.pieces.get(id) ?? { text: null, hex: '' });
    const line = (side, p) =>
      make('div.compare-line', { data: { side, drawn: found[side].token_id === id } }, make('i', { style: `width: ${100 * (p ?? 0)}%` }), make('span', {}, p === null ? say('compare.not_kept') : formatProb(p)));
    return make('div.compare-row', { data: { id } }, name, make('div', {}, line('one', one), line('other', other)));
  }
}
