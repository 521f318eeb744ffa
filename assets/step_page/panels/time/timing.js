/**
 * Where the milliseconds of each step went. Every number is measured; the prefill stands apart, on a scale of its own.
 *
 * A prefill and a decode step are not one kind of thing. The first handles all prompt tokens
 * at once, so its time belongs in no average over tokens.
 */

import { make, setText } from '../../drawing/dom.js';
import { formatCount, formatMs, formatNumber, formatPlural } from '../../drawing/format.js';
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
      title: 'Time per step', name: 'timing', term: 'lower bound', says: 'Each bar is one step: first the prefill, then one bar for every new token.', table: () => this.#table(), empty: 'Press Prefill: every step is timed here, prefill apart from decode.',
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
    const numbers = [['median ', token, '/token'], [rate, ' tokens/s'], ['prefill ', prefill, ', ', prefillRate]]
      .map((words) => make('span.lp-stat', { title: 'measured' }, ...words));
    this.frame.aside(make('div.lp-stats', {}, ...numbers));
    this.floorKey = make('span.lp-key', { hidden: true }, make('i', { data: { part: 'floor' } }), 'lower bound ', (this.stats.floor = make('b')));
    this.measure = make('button.lp-toggle', { onclick: () => this.#measure() }, 'measure this machine');
    this.layers = make('button.lp-toggle', { onclick: () => openLayers(this.#page(), this.store, this.store.selected),
      title: 'Replay this step with a clock between its layers' }, 'per layer');
    this.frame.foot.append(make('div.lp-legend', {}, ...legend, this.floorKey, this.layers, this.measure));
  }

  /** Sheets open over the page, not inside a panel. */
  #page() {
    return this.root.closest('.loupe') ?? this.root;
  }

  async #measure() {
    this.measure.disabled = true;
    setText(this.measure, 'measuring …');
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
    setText(this.measure, machine ? 'measure again' : 'measure this machine');
    this.measure.title = 'Under a second: how fast this machine reads, so that each step can be held against its lower bound';
    if (machine) this.floorKey.title = `${machineWords(machine)}; median over decode steps`;
    setText(this.stats.floor, times.length ? timesWords(median(times)) : machine ? 'take a step' : '');
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
    this.stats.prefill.parentElement.title = `measured: ${howRead(prefill)}; tokens read over the time of the forward passes alone`;
    this.stats.token.parentElement.title = `measured: median of ${formatPlural(totals.length, 'decode step')}`;
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
    const fed = step.index ? `fed ${namedToken(this.store.pieces.get(step.input_ids[0]))}` : `prefill of ${formatPlural(step.input_ids.length, 'token')}, ${howRead(step)}`;
    const times = step.timing_ms;
    if (!times) return this.tip.show(event.clientX, event.clientY, `step ${step.index}: ${fed}`, [], 'Rebuilt from its recipe, so not timed.');
    const rows = TIMING_PARTS.map(({ name, field }) => [name, formatMs(times[field])]);
    const shared = step.batch_size > 1 ? [['batch', `${formatCount(step.batch_size)} sessions in this forward pass`]] : [];
    return this.tip.show(event.clientX, event.clientY, `step ${step.index}: ${fed}`, [...rows, ['total', formatMs(times.total)], ...floorRows(step, this.store.machine), ...shared], 'measured');
  }

  #table() {
    const rows = this.store.steps.map((step) => {
      const times = step.timing_ms;
      const parts = TIMING_PARTS.map(({ field }) => (times ? formatMs(times[field]) : 'not timed'));
      const read = tokensRead(step);
      const per = times && read ? formatMs(times.forward / read) : '–';
      const { machine } = this.store;
      const floor = [formatMs(floorOf(step, machine)?.ms), timesWords(timesFloor(step, machine))];
      return [step.index, step.phase, formatCount(read), ...parts, times ? formatMs(times.total) : 'not timed', per, step.batch_size, ...floor];
    });
    return {
      caption: 'Time per step, measured; the lower bound from memory bandwidth is computed',
      columns: ['step', 'phase', 'tokens read', ...TIMING_PARTS.map(({ name }) => name), 'total', 'forward pass per token read', 'batch', 'lower bound', 'times the bound'],
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
