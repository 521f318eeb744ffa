/**
 * Where the milliseconds of each step went. Every number is measured; the prefill stands apart, on a scale of its own.
 *
 * A prefill and a decode step are not one kind of thing. The first handles all prompt tokens
 * at once, so its time belongs in no average over tokens.
 */

import { say } from '../../drawing/say.js';
import { make, setText } from '../../drawing/dom.js';
import { formatCount, formatMs, formatNumber } from '../../drawing/format.js';
import { plainToken } from '../../drawing/pieces.js';
import { namedToken } from '../../drawing/token_names.js';
import { forgetPalette, paletteOf } from '../../drawing/palette.js';
import { makeSurface } from '../../drawing/canvas.js';
import { ColumnWindow, panWith } from '../kv_cache/column_window.js';
import { makeTooltip } from '../../drawing/tooltip.js';
import { panelFrame } from '../../drawing/panel_frame.js';
import { TIMING_PARTS, TimingPainter } from './timing_painter.js';
import { floorOf, floorRows, machineWords, timesFloor, timesWords } from '../../store/floor.js';
import { openLayers } from './layer_sheet.js';
import { howRead, prefillSpeedWords, tokensRead } from './prefill.js';

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
    this.columns = new ColumnWindow({ narrowest: 8 });
    this.painter = new TimingPainter();
    this.frame = panelFrame(root, {
      title: say('timing.title'), name: 'timing', term: 'lower bound', says: say('timing.says'), table: () => this.#table(), empty: say('timing.empty'),
    });
    this.frame.note('measured');
    const host = make('div.lp-canvas', { role: 'img', 'aria-label': say('timing.chart') });
    this.frame.body.append(host);
    this.surface = makeSurface(host, () => this.#paint());
    this.tip = makeTooltip(root);
    this.pan = panWith(this.surface.canvas, this.columns, this.surface.ask);
    this.#stats();
    this.#listen(this.surface.canvas);
  }

  #stats() {
    this.stats = {};
    const legend = TIMING_PARTS.map(({ name, field, says }) => make('span.lp-key', { title: says }, make('i', { data: { part: field } }), name));
    for (const name of ['token', 'rate', 'prefill', 'prefillRate']) this.stats[name] = make('b');
    const { token, rate, prefill, prefillRate } = this.stats;
    const numbers = [['median ', token, '/token'], [rate, ' tokens/s'], ['prefill ', prefill, ', ', prefillRate]]
      .map((words) => make('span.lp-stat', { title: say('timing.measured') }, ...words));
    this.frame.aside(make('div.lp-stats', {}, ...numbers));
    this.floorKey = make('span.lp-key', { hidden: true }, make('i', { data: { part: 'floor' } }), say('timing.bound'), ' ', (this.stats.floor = make('b')));
    this.measure = make('button.lp-toggle', { data: { live: '' }, onclick: () => this.#measure() }, say('timing.measure'));
    this.layers = make('button.lp-toggle', { data: { live: '' }, onclick: () => openLayers(this.#page(), this.store, this.store.selected),
      title: say('timing.layers_title') }, say('timing.layers'));
    this.frame.foot.append(make('div.lp-legend', {}, ...legend, this.floorKey, this.layers, this.measure));
  }

  /** Sheets open over the page, not inside a panel. */
  #page() {
    return this.root.closest('.loupe') ?? this.root;
  }

  async #measure() {
    this.measure.disabled = true;
    setText(this.measure, say('timing.measuring'));
    let words = '';
    try {
      await this.store.send('measure_machine');
    } catch (error) {
      words = error.message;
    }
    this.measure.disabled = false;
    this.#floorStat();
    this.frame.note(words || 'measured');
  }

  /** The floor's stat, and which buttons make sense now. */
  #floorStat() {
    const { machine, steps, limits, selected } = this.store;
    const times = steps.slice(1).map((step) => timesFloor(step, machine)).filter((each) => each !== null);
    this.floorKey.hidden = !machine;
    this.measure.hidden = !limits.models; // not in a class: it would slow everybody down
    this.layers.hidden = !selected?.index;
    setText(this.measure, machine ? say('timing.measure_again') : say('timing.measure'));
    this.measure.title = say('timing.measure_title');
    if (machine) this.floorKey.title = say('timing.bound_title', { machine: machineWords(machine) });
    setText(this.stats.floor, times.length ? timesWords(median(times)) : machine ? say('timing.take_a_step') : '');
  }

  draw(changes) {
    const { store } = this;
    if (changes.has('theme')) forgetPalette(this.root);
    this.frame.showEmpty(!store.selected);
    if (!store.selected) return this.tip.hide();
    if (store.sel.step !== this.drawnStep) this.columns.follow = true;
    this.drawnStep = store.sel.step;
    if (changes.has('steps') || changes.has('session')) this.#summary();
    if (['steps', 'session', 'machine', 'select'].some((name) => changes.has(name))) this.#floorStat();
    this.surface.paint();
    return this.frame.refreshTable();
  }

  #summary() {
    const [prefill, ...decode] = this.store.steps;
    const totals = decode.filter((step) => step.timing_ms).map((step) => step.timing_ms.total);
    const middle = totals.length ? median(totals) : null;
    setText(this.stats.token, formatMs(middle));
    setText(this.stats.rate, middle ? formatNumber(1000 / middle) : '–');
    setText(this.stats.prefill, formatMs(prefill.timing_ms?.total ?? null));
    setText(this.stats.prefillRate, prefillSpeedWords(prefill));
    this.stats.prefill.parentElement.title = say('timing.prefill_title', { prefill: howRead(prefill) });
    this.stats.token.parentElement.title = say('timing.median', { n: totals.length });
  }

  #paint() {
    const { store } = this;
    if (!store.selected) return;
    this.painter.paint(this.surface, {
      palette: paletteOf(this.root), columns: this.columns, steps: store.steps, chosen: store.sel.step, hover: this.hover,
      label: (step) => plainToken(store.pieces.get(step.input_ids[0])), floor: (step) => floorOf(step, store.machine)?.ms ?? 0,
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
    const fed = step.index ? say('timing.fed', { token: namedToken(this.store.pieces.get(step.input_ids[0])) }) : say('timing.prefill', { n: step.input_ids.length, step: howRead(step) });
    const times = step.timing_ms;
    if (!times) return this.tip.show(event.clientX, event.clientY, say('timing.step', { step: step.index, fed }), [], say('timing.rebuilt'));
    const rows = TIMING_PARTS.map(({ name, field }) => [name, formatMs(times[field])]);
    const shared = step.batch_size > 1 ? [['batch', say('timing.batch', { sessions: formatCount(step.batch_size) })]] : [];
    return this.tip.show(event.clientX, event.clientY, say('timing.step', { step: step.index, fed }), [...rows, ['total', formatMs(times.total)], ...floorRows(step, this.store.machine), ...shared], 'measured');
  }

  #table() {
    const rows = this.store.steps.map((step) => {
      const times = step.timing_ms;
      const parts = TIMING_PARTS.map(({ field }) => (times ? formatMs(times[field]) : say('timing.not_timed')));
      const read = tokensRead(step);
      const per = times && read ? formatMs(times.forward / read) : '–';
      const { machine } = this.store;
      const floor = [formatMs(floorOf(step, machine)?.ms), timesWords(timesFloor(step, machine))];
      return [step.index, step.phase, formatCount(read), ...parts, times ? formatMs(times.total) : say('timing.not_timed'), per, step.batch_size, ...floor];
    });
    return {
      caption: say('timing.caption'),
      columns: ['step', 'phase', say('timing.tokens_read'), ...TIMING_PARTS.map(({ name }) => name), 'total', say('timing.per_token'), 'batch', say('timing.lower_bound'), say('timing.times_the_bound')],
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
