/**
 * From scores to one token: the stages, the bars, the draw, and what other settings would have made of the same scores.
 *
 * Moving a slider shows another distribution, it does not draw again. The token that was
 * drawn stays drawn; new settings act from the next step on.
 */

import { make, setText } from '../../drawing/dom.js';
import { formatBits, formatCount, formatNumber } from '../../drawing/format.js';
import { plainToken } from '../../drawing/pieces.js';
import { namedToken } from '../../drawing/token_names.js';
import { forgetPalette } from '../../drawing/palette.js';
import { makeTooltip } from '../../drawing/tooltip.js';
import { panelFrame } from '../../drawing/panel_frame.js';
import { BarList } from './bars.js';
import { Funnel } from './funnel.js';
import { DrawStrip } from './draw_strip.js';
import { drawSegments, sampleCounts, withDrawn } from './segments.js';
import { HUNDRED, Trials } from './trials.js';
import { say } from '../../drawing/say.js';
import { Sliders } from './sliders.js';
import { AskToken } from '../../controls/ask_token.js';
import { drawnDistribution, exactDistribution, rawOf, sameSampling, samplingWords, STAGE_WORDS, triedDistribution } from '../../store/distribution.js';

const DISTRIBUTION_WORDS = {
  drawn: say('sampling.note_drawn'), tried: say('sampling.note_tried'), exact: say('sampling.note_exact'),
};

class NextTokenPanel {
  constructor(root, store) {
    this.root = root;
    this.store = store;
    this.stage = null; // the stage looked at; null: the last
    this.exact = null; // {key, sampling, distribution}: the engine's answer to the last what-if, and whose record it is
    this.frame = panelFrame(root, {
      title: say('next_token.title'), name: 'next', term: 'sampling', says: say('next_token.says'), table: () => this.#table(), empty: say('next_token.empty'),
    });
    this.tip = makeTooltip(root);
    const bars = make('div.lp-bars');
    this.funnel = new Funnel(this.frame.body, (name) => {
      this.stage = name;
      this.#redraw();
    });
    this.frame.body.append(bars);
    this.bars = new BarList(bars, (id) => this.#force(id), () => this.#redraw());
    this.strip = new DrawStrip(this.frame.body, root, this.tip);
    this.trials = new Trials(this.strip.beside, () => this.#tryAgain());
    this.ask = new AskToken(this.bars.headLeft, this.bars.below, store, (id) => this.#force(id));
    this.#confirmBox(bars);
    this.#settings();
  }

  #settings() {
    this.drawnWith = make('span.lp-drawn-with');
    this.back = make('button.lp-toggle.lp-back', { title: say('next_token.back_title'), onclick: () => this.#reset() }, say('next_token.back'));
    const grid = make('div.lp-sliders');
    this.sliders = new Sliders(grid, (sampling) => this.#move(sampling), (sampling) => this.#settle(sampling));
    this.frame.foot.append(make('div.lp-settings-line', {}, this.drawnWith, this.back), grid);
  }

  #confirmBox(bars) {
    this.confirmWords = make('span');
    const go = make('button.lp-toggle.lp-go', { onclick: () => this.#forceNow() }, say('next_token.force'));
    this.confirm = make('div.lp-confirm', { hidden: true, role: 'alertdialog', 'aria-label': say('next_token.force_label') }, this.confirmWords, go,
      make('button.lp-toggle', { onclick: () => this.#closeConfirm() }, say('next_token.cancel')));
    this.confirm.addEventListener('keydown', (event) => {
      if (event.key !== 'Escape') return;
      event.stopPropagation();
      this.#closeConfirm();
    });
    bars.append(this.confirm);
  }

  /** @param {{needleMs?: number}} [how] how long u takes to find its place; no time unless asked for */
  draw(changes, { needleMs = 0 } = {}) {
    const { store } = this;
    if (changes.has('theme')) forgetPalette(this.root);
    this.frame.showEmpty(!store.selected);
    if (!store.selected) return this.tip.hide();
    if (changes.has('select') || changes.has('steps')) this.#closeConfirm();
    const key = store.keyOf(store.selected);
    if (this.exact && this.exact.key !== key) this.exact = null;
    this.trials.keepFor(key);
    if (store.params && this.paramsKey !== key) this.#forgetTry();
    this.ask.draw();
    this.strip.land(needleMs);
    return this.#redraw();
  }

  /** Another step is looked at: what was tried on the last one is over. */
  #forgetTry() {
    this.store.params = null;
    this.exact = null;
  }

  get distribution() {
    const { store } = this;
    const step = store.selected;
    if (store.params) return triedDistribution(step, store.params);
    if (this.exact?.key === store.keyOf(step)) return this.exact.distribution;
    return drawnDistribution(step);
  }

  #redraw() {
    const { store } = this;
    const step = store.selected;
    if (!step) return;
    const shown = this.distribution;
    const wanted = shown.stages.findIndex(({ name }) => name === this.stage);
    const index = wanted < 0 ? shown.stages.length - 1 : wanted;
    const stage = shown.stages[index];
    const isLast = index === shown.stages.length - 1;
    const ids = step.planes.cand_ids.data;
    const probs = shown.at(index);
    // As many candidates as a record keeps at every stage, so that the strip does not jump when exact values come.
    const last = (isLast ? probs : shown.at(shown.stages.length - 1)).slice(0, step.planes.stage_probs.shape[1]);
    const tried = shown.kind !== 'drawn';
    const shares = drawSegments(ids, last);
    const segments = tried ? shares : withDrawn(shares, step.draw);
    this.counts = this.trials.numbers && sampleCounts(segments, this.trials.numbers);
    this.funnel.draw(shown, stage.name, store.model.vocab_size);
    this.bars.draw({
      ids, probs, raw: rawOf(step), kept: stage.kept, vocabulary: store.model.vocab_size, draw: step.draw, pieces: store.pieces,
      stage: stage.label, stageShort: isLast ? 'final' : STAGE_WORDS[stage.name], isLast, was: tried ? this.#was(step) : null,
      counts: isLast ? this.counts : null,
    });
    const others = shown.stages.at(-1).kept - Array.from(last).filter((p) => p > 0).length;
    this.strip.draw({ segments, draw: step.draw, tried, pieces: store.pieces, others, again: this.trials.u });
    this.#words(step, shown);
    this.frame.refreshTable();
  }

  /** With which probabilities the step was sampled. */
  #was(step) {
    const drawn = drawnDistribution(step);
    return drawn.at(drawn.stages.length - 1);
  }

  #tryAgain() {
    this.stage = null; // samples come from the last stage
    this.#redraw();
    const again = this.trials.u === null ? '' : this.strip.againWords('');
    const most = this.counts && [...this.counts].filter(([id]) => id !== null).sort((a, b) => b[1] - a[1])[0];
    const often = most ? say('sampling.most', { of: HUNDRED, count: most[1], token: namedToken(this.store.pieces.get(most[0])) }) : '';
    this.trials.tell(`${again} ${often} ${say('sampling.run_stays')}`.trim());
  }

  #words(step, shown) {
    const { session, params, model } = this.store;
    this.root.dataset.showing = shown.kind;
    this.frame.note(DISTRIBUTION_WORDS[shown.kind]);
    const current = params ?? session?.sampling ?? step.sampling;
    const differs = !sameSampling(current, step.sampling);
    const sampling = samplingWords(step.sampling);
    const how = step.sampling.temperature === 0 ? sampling : say('next_token.sampled_at', { sampling });
    setText(this.drawnWith, differs ? say('next_token.this_step', { how }) : say('next_token.same', { how }));
    this.drawnWith.title = this.drawnWith.textContent;
    this.back.classList.toggle('lp-hidden', !differs && shown.kind === 'drawn');
    this.sliders.set(current, model.vocab_size);
  }

  #move(sampling) {
    this.exact = null;
    this.paramsKey = this.store.keyOf(this.store.selected);
    this.store.setParams(sampling);
  }

  /** As if the sliders had been moved there and let go. */
  use(sampling) {
    this.#move(sampling);
    return this.#settle(sampling);
  }

  /** The slider was let go: the next steps use it, and the engine says what it would have made of this one. */
  async #settle(sampling) {
    const { store } = this;
    const step = store.selected;
    if (!step) return;
    const key = store.keyOf(step);
    store.send('settings', { sampling }).catch(() => {});
    try {
      const answer = await store.send('what_if', { step: step.index, sampling });
      if (store.keyOf(store.selected) !== key || (store.params && !sameSampling(store.params, sampling))) return;
      this.exact = { key, sampling, distribution: exactDistribution(answer, sampling) };
      store.setParams(null);
    } catch {
      // The estimate stays on screen under its own name.
    }
  }

  #reset() {
    const step = this.store.selected;
    this.#forgetTry();
    this.store.send('settings', { sampling: step.sampling }).catch(() => {});
    if (this.store.session) this.store.session.sampling = { ...step.sampling };
    this.store.setParams(null);
  }

  #force(id) {
    const { store } = this;
    const step = store.selected;
    this.forcing = { step: step.index, token_id: id };
    const later = store.newest - step.index;
    if (!later) return this.#forceNow();
    setText(this.confirmWords, say('next_token.replaces', { token: namedToken(store.pieces.get(id)), n: later }));
    this.confirm.hidden = false;
    this.confirm.querySelector('button').focus({ preventScroll: true });
  }

  #forceNow() {
    const { store, forcing } = this;
    this.#closeConfirm();
    store.sel = { ...store.sel, follow: true };
    store.send('force', forcing).catch((error) => {
      setText(this.confirmWords, error.message ?? String(error));
      this.confirm.hidden = false;
    });
  }

  #closeConfirm() {
    this.confirm.hidden = true;
  }

  #table() {
    const { store } = this;
    const step = store.selected;
    if (!step) return { caption: say('next_token.title'), columns: [], rows: [] };
    const shown = this.distribution;
    const ids = step.planes.cand_ids.data;
    const raw = rawOf(step);
    const columns = shown.stages.map((_, index) => shown.at(index));
    const count = Math.min(ids.length, ...columns.map((column) => column.length));
    const was = shown.kind === 'drawn' ? null : this.#was(step);
    const more = [
      ...(was ? [[say('sampling.was_title'), (i) => formatNumber(was[i], 4)]] : []),
      ...(this.counts ? [[say('sampling.samples', { count: HUNDRED }), (i) => this.counts.get(ids[i]) ?? 0]] : []),
    ];
    const tokens = Array.from({ length: count }, (_, i) => [
      i + 1, plainToken(store.pieces.get(ids[i])), ids[i], ...columns.map((column, s) => formatNumber(s ? column[i] : raw[i], 4)),
      ...more.map(([, of]) => of(i)),
    ]);
    const summary = (name, of) => ['', name, '', ...shown.stages.map(of), ...more.map(() => '')];
    return {
      caption: say('next_token.caption', { step: step.index, shown: DISTRIBUTION_WORDS[shown.kind], token: namedToken(store.pieces.get(step.draw.token_id)) }),
      columns: ['rank', 'token', 'id', ...shown.stages.map(({ label }) => label), ...more.map(([name]) => name)],
      rows: [summary(say('next_token.tokens_kept'), ({ kept }) => formatCount(kept)), summary('entropy', ({ bits }) => formatBits(bits)), ...tokens],
    };
  }

  destroy() {
    this.sliders.destroy();
    this.bars.destroy();
    this.strip.destroy();
  }
}

/** @param {HTMLElement} root an empty element */
export function nextTokenPanel(root, store) {
  const panel = new NextTokenPanel(root, store);
  return {
    draw: (changes, how) => panel.draw(changes, how),
    destroy: () => panel.destroy(),
    use: (sampling) => panel.use(sampling),
  };
}
