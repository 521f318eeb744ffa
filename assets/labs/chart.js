/**
 * A chart above the fold of a lab: lines and points, or bars. It is small, keeps its height from the start, and is drawn
 * anew in place. Python has placed everything: what arrives are fractions of the plot, 0 to 1, and words.
 *
 * Arrow keys read the values one after the other, and a button shows all of them as a table in the chart's place.
 *
 * State for tests, on .lab-chart: data-kind, and data-drawn (how often it was drawn); .lab-said, .lab-table
 */

import { make } from '../step_page/drawing/dom.js';
import { themeOf } from '../step_page/drawing/palette.js';
import { tableTwin } from '../step_page/drawing/table_twin.js';
import { makeTooltip } from '../step_page/drawing/tooltip.js';
import { takeAway } from '../step_page/picture/take_away.js';

const CHART_NS = 'http://www.w3.org/2000/svg';
const CHART_DASHES = { solid: null, dash: '9 6', dot: '2 6' };
const CHART_BLOCKS = { block: 1, hollow: 0.3 };
const EDGE = { top: 14, right: 22 }; // pixels around the plot; the left follows the longest number, the bottom the type
const LETTER = 0.56; // of the type size: a digit's width
const CHART_COLUMNS = ['where', 'what', 'value'];
const REACH = 26; // pixels: a point is looked at from this near

function shape(tag, attributes, text) {
  const node = document.createElementNS(CHART_NS, tag);
  for (const [name, value] of Object.entries(attributes)) {
    if (value !== null && value !== undefined) node.setAttribute(name, value);
  }
  if (text !== undefined) node.textContent = text;
  return node;
}

const ink = (role) => `var(--${role})`;

class LabChart {
  constructor(parent) {
    this.root = parent.querySelector('.lab-root') ?? parent.appendChild(make('div.lab-root'));
    this.box = make('figure.lab-chart');
    this.root.replaceChildren(this.box);
    this.tip = makeTooltip(this.root);
    this.said = make('p.lab-said', { role: 'status' });
    this.root.append(this.said);
    this.drawn = 0;
    this.sized = new ResizeObserver(() => this.plot && this.#plot());
    this.sized.observe(this.box);
  }

  update(data) {
    this.root.dataset.theme = themeOf(this.root);
    this.tip.hide();
    this.data = data;
    this.plot = null;
    const body = data.kind === 'bars' ? this.#bars() : this.#lines();
    this.cursor = -1;
    this.box.classList.remove('as-table');
    this.box.replaceChildren(
      make('figcaption', {}, make('b', {}, data.title), make('span', {}, data.note), this.#tableButton(body), this.#save(body)), this.#legend(), body);
    Object.assign(this.box.dataset, { kind: data.kind, drawn: (this.drawn += 1) });
    if (this.plot) this.#plot();
  }

  destroy() {
    this.sized.disconnect();
    this.tip.hide();
  }

  /** The same numbers as a table, in the chart's place. */
  #tableButton(body) {
    const rows = chartRows(this.data);
    const label = `${this.data.title}: the same numbers as a table`;
    const button = make('button.lab-table-button', { 'aria-pressed': 'false', 'aria-label': `table. ${label}`, title: label, onclick: () => {
      const isOn = button.getAttribute('aria-pressed') !== 'true';
      button.setAttribute('aria-pressed', String(isOn));
      this.box.classList.toggle('as-table', isOn);
      if (isOn) body.replaceWith(table);
      else table.replaceWith(body);
    } }, 'table');
    const table = make('div.lab-table', {},
      tableTwin(CHART_COLUMNS, rows, this.data.title));
    return rows.length ? button : '';
  }

  /** A chart is taken away as it is drawn, also where its table stands. */
  #save(body) {
    const { title, note } = this.data;
    const rows = chartRows(this.data);
    return takeAway({
      name: title, title, table: rows.length ? () => ({ columns: CHART_COLUMNS, rows }) : undefined,
      prepare: () => this.#withoutTable(body),
      picture: () => ({ root: this.root, note, parts: [this.box.querySelector('.lab-legend'), body] }),
    });
  }

  #withoutTable(body) {
    const table = this.box.querySelector('.lab-table');
    if (!table) return () => {};
    this.box.classList.remove('as-table');
    table.replaceWith(body);
    return () => {
      body.replaceWith(table);
      this.box.classList.add('as-table');
    };
  }

  /** Arrow keys go from value to value. @param {() => Array<() => string[]>} stops each shows itself and gives its words */
  #readBy(node, stops) {
    node.setAttribute('tabindex', '0');
    node.addEventListener('keydown', (event) => {
      const all = stops();
      const to = { ArrowRight: this.cursor + 1, ArrowLeft: this.cursor - 1, Home: 0, End: all.length - 1 }[event.key];
      if (to === undefined || !all.length) return;
      event.preventDefault();
      this.cursor = Math.max(0, Math.min(all.length - 1, to));
      this.said.textContent = all[this.cursor]().filter(Boolean).join(', ');
    });
    node.addEventListener('blur', () => this.#away());
  }

  /** Every place that has words, from left to right. */
  #places() {
    const box = this.plot.getBoundingClientRect();
    const worded = [...this.data.points.filter(({ words }) => words), ...this.data.lines.filter(({ words }) => words.length)];
    const all = worded.flatMap(({ at }) => (Array.isArray(at[0]) ? at : [at])).sort((a, b) => a[0] - b[0]);
    const apart = all.filter(([x], i) => !i || x !== all[i - 1][0]);
    return apart.map(([x, y]) => () => this.#look({ clientX: box.left + this.x(x), clientY: box.top + this.y(y) }));
  }

  #legend() {
    const entries = this.data.legend.map(({ name, colour, dash }) => make('li', {}, this.#sample(colour, dash), name));
    return make('ul.lab-legend', { hidden: entries.length === 0 }, ...entries);
  }

  #sample(colour, dash) {
    const svg = shape('svg', { width: 26, height: 12, 'aria-hidden': 'true' });
    svg.append(dash in CHART_BLOCKS
      ? shape('rect', { x: 7, width: 12, height: 12, rx: 3, fill: ink(colour), opacity: CHART_BLOCKS[dash] })
      : shape('line', { x1: 1, x2: 25, y1: 6, y2: 6, stroke: ink(colour), 'stroke-width': 4, 'stroke-dasharray': CHART_DASHES[dash] }));
    return svg;
  }

  #lines() {
    this.plot = shape('svg', { role: 'img', 'aria-label': this.data.alt });
    this.plot.addEventListener('pointermove', (event) => this.#look(event));
    this.plot.addEventListener('pointerleave', () => this.#away());
    this.#readBy(this.plot, () => (this.mark ? this.#places() : []));
    const host = make('div.lab-plot', {}, make('span.lab-axis', {}, this.data.y.title));
    host.append(this.plot);
    return host;
  }

  #plot() {
    const { data, plot } = this;
    const { width, height } = plot.getBoundingClientRect();
    if (width < 40 || height < 40) return;
    const size = parseFloat(getComputedStyle(this.root).fontSize);
    const left = 12 + LETTER * size * Math.max(3, ...data.y.ticks.map(([, words]) => words.length));
    const w = width - left - EDGE.right;
    const h = height - EDGE.top - 3 * size;
    Object.assign(this, { size, width, taken: [] });
    this.x = (at) => left + at * w;
    this.y = (at) => EDGE.top + (1 - at) * h;
    plot.replaceChildren(...this.#axes(size, w, h), ...this.#levels(size), ...data.lines.map((line) => this.#line(line)),
      ...data.points.flatMap((point) => this.#point(point)), (this.mark = shape('g', {})));
  }

  #axes(size, w, h) {
    const { x, y } = this.data;
    const bottom = EDGE.top + h;
    const made = [];
    let above = Infinity; // where the next number up the axis must end
    for (const [at, words] of y.ticks) {
      if (this.y(at) > above) continue;
      above = this.y(at) - 1.1 * size;
      made.push(shape('line', { class: 'grid', x1: this.x(0), x2: this.x(1), y1: this.y(at), y2: this.y(at) }));
      made.push(shape('text', { x: this.x(0) - 8, y: this.y(at) + size * 0.35, 'text-anchor': 'end' }, words));
    }
    let free = -Infinity; // where the next number may begin
    for (const [at, words] of x.ticks) {
      const half = (words.length * size * LETTER) / 2;
      const middle = Math.min(this.x(at), this.x(1) + EDGE.right - half);
      if (middle - half < free) continue;
      free = middle + half + size;
      made.push(shape('line', { class: 'grid', x1: this.x(at), x2: this.x(at), y1: EDGE.top, y2: bottom }));
      made.push(shape('text', { x: middle, y: bottom + size * 1.25, 'text-anchor': 'middle' }, words));
    }
    made.push(shape('text', { class: 'title', x: this.width / 2, y: bottom + size * 2.6, 'text-anchor': 'middle' }, x.title));
    made.push(shape('line', { class: 'axis', x1: this.x(0), x2: this.x(1), y1: bottom, y2: bottom }));
    return made;
  }

  #levels(size) {
    return this.data.levels.flatMap(({ at, words, colour }) => [
      shape('line', { x1: this.x(0), x2: this.x(1), y1: this.y(at), y2: this.y(at), stroke: ink(colour), 'stroke-width': 2, 'stroke-dasharray': '8 6' }),
      shape('text', { class: 'halo', x: this.x(0) + 10, y: this.y(at) - size * 0.45, style: `fill: ${ink(colour)}` }, words),
    ]);
  }

  #line({ at, colour, dash, wide }) {
    const d = at.map(([x, y], i) => `${i ? 'L' : 'M'}${this.x(x).toFixed(1)} ${this.y(y).toFixed(1)}`).join('');
    return shape('path', { d, fill: 'none', stroke: ink(colour), 'stroke-width': wide ? 5 : 3, 'stroke-dasharray': CHART_DASHES[dash], 'stroke-linejoin': 'round' });
  }

  #point({ at: [x, y], label, colour, hollow, above: isAbove }) {
    const radius = label ? 9 : 6;
    const made = [shape('circle', { cx: this.x(x), cy: this.y(y), r: radius, stroke: ink(colour), 'stroke-width': 3, fill: hollow ? 'var(--card)' : ink(colour) })];
    const text = label && this.#label(this.x(x), this.y(y), label, isAbove, y);
    return text ? [...made, text] : made;
  }

  /** A point's label beside it, inside the plot; none where it would lie on another's. */
  #label(x, y, words, isAbove, share) {
    const wide = words.length * this.size * LETTER;
    const toTheLeft = x + 20 + wide > this.width;
    const base = y + (isAbove || (toTheLeft && share < 0.85) ? -12 : 24);
    const start = toTheLeft ? x - 16 - wide : x + 16;
    if (this.taken.some(([from, to, at]) => start < to && start + wide > from && Math.abs(at - base) < this.size)) return null;
    this.taken.push([start, start + wide, base]);
    return shape('text', { class: 'halo label', x: x + (toTheLeft ? -16 : 16), y: base, 'text-anchor': toTheLeft ? 'end' : 'start' }, words);
  }

  /** @returns {string[]} what is shown, in words */
  #look(event) {
    if (!this.mark) return [];
    const box = this.plot.getBoundingClientRect();
    const [x, y] = [event.clientX - box.left, event.clientY - box.top];
    const near = ({ at }) => Math.hypot(this.x(at[0]) - x, this.y(at[1]) - y);
    const point = this.data.points.filter((one) => one.words && near(one) < REACH).sort((a, b) => near(a) - near(b))[0];
    if (point) return this.#show(event, point.name, [['', point.words]], [point]);
    const lines = this.data.lines.filter((line) => line.words.length);
    if (!lines.length) {
      this.#away();
      return [];
    }
    const found = lines.map((line) => {
      const i = line.at.reduce((best, [at], n) => (Math.abs(this.x(at) - x) < Math.abs(this.x(line.at[best][0]) - x) ? n : best), 0);
      return { name: line.name, words: line.words[i], where: line.wheres[i], at: line.at[i], colour: line.colour };
    });
    return this.#show(event, found[0].where, found.map(({ name, words }) => [name, words]), found);
  }

  #show(event, title, rows, marked) {
    this.mark.replaceChildren(...marked.map(({ at, colour }) =>
      shape('circle', { cx: this.x(at[0]), cy: this.y(at[1]), r: 6, fill: ink(colour), stroke: 'var(--card)', 'stroke-width': 2 })));
    this.tip.show(event.clientX, event.clientY, title, rows);
    return [title, ...rows.map((row) => row.filter(Boolean).join(' '))];
  }

  #away() {
    this.mark?.replaceChildren();
    this.tip.hide();
  }

  #bars() {
    const rows = this.data.rows.map(({ name, detail, parts, said, strong }) => make(`div.lab-bar${strong ? '.strong' : ''}`, {},
      make('div.lab-bar-name', {}, make('b', {}, name), make('span', {}, detail)),
      make('div.lab-track', {}, ...parts.map((part) => this.#part(part)), make('b', {}, said))));
    const bars = make('div.lab-bars', { role: 'img', 'aria-label': this.data.alt }, ...rows);
    const parts = this.data.rows.flatMap((row) => row.parts.map((part) => [row.name, part]));
    this.#readBy(bars, () => [...bars.querySelectorAll('.lab-track > i')].map((node, i) => () => {
      const { left, bottom } = node.getBoundingClientRect();
      const [bar, { name, words }] = parts[i];
      this.tip.show(left, bottom, name, [['', words]]);
      return [bar, name, words];
    }));
    return bars;
  }

  #part({ share, colour, name, words, hollow }) {
    const node = make(`i${hollow ? '.hollow' : ''}`, { style: `--share: ${share}; --ink: ${ink(colour)}` });
    node.addEventListener('pointermove', (event) => this.tip.show(event.clientX, event.clientY, name, [['', words]]));
    node.addEventListener('pointerleave', () => this.tip.hide());
    return node;
  }
}

/** Every value of a chart as a row: where, what, how much. */
function chartRows({ kind, rows, lines, points }) {
  if (kind === 'bars') return rows.flatMap(({ name, parts, said }) => [[name, '', said], ...parts.map((part) => [name, part.name, part.words])]);
  return [
    ...points.filter(({ words }) => words).map(({ name, words }) => ['', name, words]),
    ...lines.flatMap(({ name, words, wheres }) => words.map((word, i) => [wheres[i], name, word])),
  ];
}

const labCharts = new WeakMap();

export default function labChart({ data, parentElement }) {
  let chart = labCharts.get(parentElement);
  if (!chart) labCharts.set(parentElement, (chart = new LabChart(parentElement)));
  chart.update(data);
  return () => {
    labCharts.delete(parentElement);
    chart.destroy();
  };
}
