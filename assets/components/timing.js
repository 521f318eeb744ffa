/**
 * Where the milliseconds of each step went. Every number is measured; the prefill stands apart, on a scale of its own.
 *
 * The fact people get wrong: a prefill and a decode step are not one kind of thing. The first handles all prompt tokens
 * at once, so its time belongs in no average over tokens.
 */

import { make, setText } from './dom.js';
import { formatCount, formatMs, formatNumber, formatPlural } from './format.js';
import { plainToken } from './pieces.js';
import { namedToken } from './token_names.js';
import { forgetPalette, paletteOf } from './palette.js';
import { makeSurface } from './canvas.js';
import { ColumnWindow, panWith } from './column_window.js';
import { makeTooltip } from './tooltip.js';
import { panelFrame } from './panel_frame.js';
import { TIMING_PARTS, TimingPainter } from './timing_painter.js';

/** The middle one; the mean of the middle two where there is an even number. */
function median(values) {
  const sorted = [...values].sort((a, b) => a - b);
  const middle = sorted.length >> 1;
  return sorted.length % 2 ? sorted[middle] : (sorted[middle - 1] + sorted[middle]) / 2;
}

class TimingPanel {
  constructor(root, store) {
    this.root = root;
    this.store = store;
    this.columns = new ColumnWindow({ widest: 58, narrowest: 8 });
    this.painter = new TimingPainter();
    this.frame = panelFrame(root, {
      title: 'Time per step', name: 'timing', table: () => this.#table(), empty: 'Press Prefill: every step is timed here, prefill apart from decode.',
    });
    this.frame.note('measured');
    const host = make('div.lp-canvas', { role: 'img', 'aria-label': 'Time per step; the table button shows the numbers' });
    this.frame.body.append(host);
    this.surface = makeSurface(host, () => this.#paint());
    this.tip = makeTooltip(root);
    this.pan = panWith(this.surface.canvas, this.columns, this.surface.ask);
    this.#stats();
    this.#listen(this.surface.canvas);
  }

  #stats() {
    this.stats = {};
    const legend = TIMING_PARTS.map(({ name, says }) => make('span.lp-key', { title: says }, make('i', { data: { part: name } }), name));
    for (const name of ['token', 'rate', 'prefill', 'prefillRate']) this.stats[name] = make('b');
    const { token, rate, prefill, prefillRate } = this.stats;
    const numbers = [['median ', token, '/token'], [rate, ' tokens/s'], ['prefill ', prefill, ', ', prefillRate, ' tokens/s']]
      .map((words) => make('span.lp-stat', { title: 'measured' }, ...words));
    this.frame.aside(make('div.lp-stats', {}, ...numbers));
    this.frame.foot.append(make('div.lp-legend', {}, ...legend));
  }

  draw(changes) {
    const { store } = this;
    if (changes.has('theme')) forgetPalette(this.root);
    this.frame.showEmpty(!store.selected);
    if (!store.selected) return this.tip.hide();
    if (store.sel.step !== this.drawnStep) this.columns.follow = true;
    this.drawnStep = store.sel.step;
    if (changes.has('steps') || changes.has('session')) this.#summary();
    this.surface.paint();
    return this.frame.refreshTable();
  }

  #summary() {
    const [prefill, ...decode] = this.store.steps;
    const totals = decode.filter((step) => step.timing_ms).map((step) => step.timing_ms.total);
    const middle = totals.length ? median(totals) : null;
    setText(this.stats.token, formatMs(middle));
    setText(this.stats.rate, middle ? formatNumber(1000 / middle) : '–');
    const first = prefill.timing_ms?.total ?? null;
    setText(this.stats.prefill, formatMs(first));
    setText(this.stats.prefillRate, first ? formatNumber((1000 * prefill.input_ids.length) / first) : '–');
    this.stats.token.parentElement.title = `measured: median of ${formatPlural(totals.length, 'decode step')}`;
  }

  #paint() {
    const { store } = this;
    if (!store.selected) return;
    this.painter.paint(this.surface, {
      palette: paletteOf(this.root), columns: this.columns, steps: store.steps, chosen: store.sel.step, hover: this.hover,
      label: (step) => plainToken(store.pieces.get(step.input_ids[0])),
    });
  }

  #listen(canvas) {
    canvas.addEventListener('pointermove', (event) => {
      this.hover = this.painter.stepAt(event.offsetX);
      const step = this.hover === null ? null : this.store.steps[this.hover];
      if (step) this.#tell(event, step);
      else this.tip.hide();
      this.surface.ask();
    });
    canvas.addEventListener('pointerleave', () => {
      this.hover = null;
      this.tip.hide();
      this.surface.ask();
    });
    canvas.addEventListener('click', (event) => {
      const step = this.painter.stepAt(event.offsetX);
      if (step !== null && !this.pan.moved()) this.store.select({ step });
    });
  }

  #tell(event, step) {
    const fed = step.index ? `fed ${namedToken(this.store.pieces.get(step.input_ids[0]))}` : `prefill of ${formatPlural(step.input_ids.length, 'token')}`;
    const times = step.timing_ms;
    if (!times) return this.tip.show(event.clientX, event.clientY, `step ${step.index}: ${fed}`, [], 'Rebuilt from its recipe, so not timed.');
    const rows = TIMING_PARTS.map(({ name, field }) => [name, formatMs(times[field])]);
    const shared = step.batch_size > 1 ? [['batch', `${formatCount(step.batch_size)} sessions in this forward`]] : [];
    return this.tip.show(event.clientX, event.clientY, `step ${step.index}: ${fed}`, [...rows, ['total', formatMs(times.total)], ...shared], 'measured');
  }

  #table() {
    const rows = this.store.steps.map((step) => {
      const times = step.timing_ms;
      const parts = TIMING_PARTS.map(({ field }) => (times ? formatMs(times[field]) : 'not timed'));
      const per = times ? formatMs(times.total / step.input_ids.length) : '–';
      return [step.index, step.phase, formatCount(step.input_ids.length), ...parts, times ? formatMs(times.total) : 'not timed', per, step.batch_size];
    });
    return {
      caption: 'Time per step, measured',
      columns: ['step', 'phase', 'tokens fed', ...TIMING_PARTS.map(({ name }) => name), 'total', 'per token fed', 'batch'],
      rows,
    };
  }

  destroy() {
    this.pan.destroy();
    this.surface.destroy();
  }
}

/** @param {HTMLElement} root an empty element */
export function timingPanel(root, store) {
  const panel = new TimingPanel(root, store);
  return { draw: (changes) => panel.draw(changes), destroy: () => panel.destroy() };
}
