/**
 * One head's attention, tile by tile: scores as they come, the three things kept between tiles, and the output on its
 * way. Scrubbing asks nobody: all tiles are here.
 *
 * Nothing is corrected in the end. Whenever a larger score turns up, what was summed so far
 * is multiplied down once, and every later tile is added to that.
 *
 * State for tests, on .tile-walk: data-tile (looked at, from 1), data-tiles.
 */

import { make, setText } from '../step_page/drawing/dom.js';
import { formatCount, formatNumber } from '../step_page/drawing/format.js';
import { fitLabel, makeSurface } from '../step_page/drawing/canvas.js';
import { decodeFrame } from '../step_page/store/frame.js';
import { forgetPalette, paletteOf, themeOf } from '../step_page/drawing/palette.js';
import { plainToken } from '../step_page/drawing/pieces.js';
import { say } from '../step_page/drawing/say.js';
import { takeAway } from '../step_page/picture/take_away.js';

const SETTLE_MS = 250;
const LABEL_WIDTH = 34; // pixels: narrower columns carry no token
const BAR_WIDEST = 64; // pixels: three keys on a wide screen are still bars, not blocks
const STATS = [
  ['seen', 'keys seen'],
  ['m', 'm, largest score so far'],
  ['rescale', 'earlier sums times'],
  ['l', 'l, sum of e^(score − m)'],
  ['off', 'output, furthest from exact'],
];

function formatScore(x) {
  if (x === -Infinity) return 'none';
  return x.toFixed(Math.abs(x) < 100 ? 3 : 1).replace('-', '−');
}

function formatSmall(x) {
  if (x === 0) return '0';
  return x >= 1e-3 ? formatNumber(x) : x.toExponential(1).replace('-', '−');
}

class TileWalk {
  constructor(parent) {
    this.parent = parent;
    this.root = parent.querySelector('.loupe') ?? parent.appendChild(make('div.loupe'));
    this.tile = 1;
    this.walkKey = null;
    this.#build();
  }

  #build() {
    this.slider = make('input', { type: 'range', min: 1, value: 1, 'aria-label': 'Tile', oninput: () => this.#go(Number(this.slider.value)) });
    this.where = make('b.tile-where');
    this.first = make('button', { onclick: () => this.#go(this.tile - 1), 'aria-label': 'Tile before' }, '‹');
    this.next = make('button', { onclick: () => this.#go(this.tile + 1), 'aria-label': 'Next tile' }, '›');
    this.words = make('p.tile-words', { role: 'status' });
    this.stats = Object.fromEntries(STATS.map(([name]) => [name, make('b')]));
    const cards = STATS.map(([name, label]) => make('div.tile-stat', {}, make('span', {}, label), this.stats[name]));
    this.surfaces = [];
    const chart = (title, spec, paint) => {
      const host = make(`div.tile-canvas.${spec}`, { role: 'img', 'aria-label': `${title}; the numbers are in the table below` });
      const figure = make('figure', {}, make('figcaption', {}, title), host);
      this.surfaces.push([host, paint]);
      return figure;
    };
    this.walk = make(
      'div.tile-walk', {},
      make('div.tile-bar', {}, this.first, this.slider, this.next, this.where, this.#save()),
      this.words,
      make('div.tile-stats', {}, ...cards),
      chart('Score of each key; the dashed line is m', 'tall', (s) => this.#paintScores(s)),
      make('div.tile-pair', {},
        chart('Output o / l by dimension; the ticks are the exact output', 'low', (s) => this.#paintOutput(s)),
        chart('Furthest from the exact output after each tile, log scale', 'low', (s) => this.#paintErrors(s)),
      ),
    );
    this.root.replaceChildren(this.walk);
    this.surfaces = this.surfaces.map(([host, paint]) => makeSurface(host, paint));
  }

  #save() {
    return takeAway({
      name: 'tiles', title: 'One head, tile by tile',
      picture: () => ({ root: this.root, note: this.where.textContent, parts: [this.words, ...this.walk.querySelectorAll(':scope > :is(.tile-stats, figure, .tile-pair)')] }),
      table: () => ({ columns: ['tile', ...STATS.map(([, label]) => label)], rows: Array.from({ length: this.data.tiles }, (_, i) => this.#row(i)) }),
    });
  }

  /** What was kept after a tile. */
  #row(at) {
    const { m, rescale, l, off } = this.data;
    return [at + 1, this.#range(at + 1)[1], m.data[at], rescale.data[at], l.data[at], off[at]].map(String);
  }

  update(data, setStateValue) {
    this.setStateValue = setStateValue;
    this.root.dataset.theme = themeOf(this.root);
    forgetPalette(this.root);
    const { header, hydrate } = decodeFrame(data);
    const walk = hydrate(header);
    this.data = walk;
    if (walk.key !== this.walkKey) {
      this.walkKey = walk.key;
      this.tile = Math.min(Math.max(1, walk.tile), walk.tiles);
    }
    this.slider.max = walk.tiles;
    this.#draw();
  }

  #go(tile) {
    const to = Math.min(Math.max(1, tile), this.data.tiles);
    if (to === this.tile) return;
    this.tile = to;
    this.#draw();
    clearTimeout(this.settling);
    this.settling = setTimeout(() => this.setStateValue('tile', this.tile), SETTLE_MS);
  }

  /** Where the tile looked at begins and ends. */
  #range(tile = this.tile) {
    const { size, keys } = this.data;
    return [(tile - 1) * size, Math.min(tile * size, keys)];
  }

  /** m before this tile: the sink's logit, or nothing, before the first. */
  #mBefore() {
    return this.tile === 1 ? (this.data.begin ?? -Infinity) : this.data.m.data[this.tile - 2];
  }

  #draw() {
    const { data, tile } = this;
    const at = tile - 1;
    const [start, end] = this.#range();
    this.slider.value = tile;
    this.slider.setAttribute('aria-valuetext', `tile ${tile} of ${data.tiles}`);
    this.first.disabled = tile === 1;
    this.next.disabled = tile === data.tiles;
    setText(this.where, `tile ${formatCount(tile)} of ${formatCount(data.tiles)}`);
    setText(this.stats.seen, `${formatCount(end)} of ${formatCount(data.keys)}`);
    setText(this.stats.m, formatScore(data.m.data[at]));
    setText(this.stats.rescale, this.#mBefore() === -Infinity ? 'nothing yet' : formatSmall(data.rescale.data[at]));
    setText(this.stats.l, formatNumber(data.l.data[at], 4));
    setText(this.stats.off, formatSmall(data.off[at]));
    setText(this.words, this.#sentence(start, end));
    Object.assign(this.walk.dataset, { tile, tiles: data.tiles });
    for (const surface of this.surfaces) surface.paint();
  }

  #sentence(start, end) {
    const { data, tile } = this;
    const before = this.#mBefore();
    const now = data.m.data[tile - 1];
    const holds = say('tile.holds', { tile, n: end - start, first: start, last: end - 1 });
    if (now === -Infinity) return `${holds} ${say('tile.hidden')}`;
    if (before === -Infinity) return `${holds} ${say('tile.begins', { now: formatScore(now) })}`;
    if (now > before) return `${holds} ${say('tile.passes', { now: formatScore(now), before: formatScore(before), factor: formatSmall(data.rescale.data[tile - 1]) })}`;
    return `${holds} ${say('tile.adds', { before: formatScore(before) })}`;
  }

  #paintScores({ g, w, h }) {
    const colours = paletteOf(this.root);
    const { scores, keys, tokens, m } = this.data;
    const [start, end] = this.#range();
    const shown = [...scores.data].filter((s) => s !== -Infinity);
    if (!shown.length) return;
    const low = Math.min(...minMax(shown), 0);
    const high = Math.max(...minMax(shown), 0);
    const foot = 24;
    const y = (score) => 10 + (h - foot - 10) * (1 - (score - low) / (high - low || 1));
    const column = w / keys;
    g.fillStyle = colours.grid.css;
    g.fillRect(start * column, 0, (end - start) * column, h);
    for (let i = 0; i < keys; i++) {
      const score = scores.data[i];
      if (score === -Infinity) continue;
      g.fillStyle = i < start ? colours.prompt.css : i < end ? colours.accent.css : colours.line.css;
      const top = Math.min(y(score), y(0));
      const bar = Math.min(BAR_WIDEST, Math.max(1, column * 0.8));
      g.fillRect((i + 0.5) * column - bar / 2, top, bar, Math.max(1, Math.abs(y(score) - y(0))));
    }
    g.font = `${Math.round(colours.fontSize * 0.86)}px ${colours.mono}`;
    g.textAlign = 'center';
    g.fillStyle = colours.mute.css;
    if (column >= LABEL_WIDTH) tokens.forEach((piece, i) => g.fillText(fitLabel(g, plainToken(piece), column - 4), (i + 0.5) * column, h - 7));
    const largest = m.data[this.tile - 1];
    if (largest === -Infinity) return;
    g.strokeStyle = colours.text.css;
    g.setLineDash([5, 4]);
    line(g, [[0, y(largest)], [end * column, y(largest)]]);
    g.setLineDash([]);
  }

  #paintOutput({ g, w, h }) {
    const colours = paletteOf(this.root);
    const { out, exact } = this.data;
    const width = exact.length;
    const now = out.data.subarray((this.tile - 1) * width, this.tile * width);
    const most = Math.max(...minMax(exact.data).map(Math.abs), ...minMax(now).map(Math.abs), 1e-12);
    const y = (value) => h / 2 - (value / most) * (h / 2 - 6);
    const column = w / width;
    for (let i = 0; i < width; i++) {
      g.fillStyle = colours.gen.css;
      g.fillRect(i * column + column * 0.15, Math.min(y(now[i]), h / 2), Math.max(1, column * 0.7), Math.max(1, Math.abs(y(now[i]) - h / 2)));
      g.fillStyle = colours.text.css;
      g.fillRect(i * column, y(exact.data[i]) - 1, Math.max(1, column - 0.5), 2);
    }
  }

  #paintErrors({ g, w, h }) {
    const colours = paletteOf(this.root);
    const { off, tiles } = this.data;
    const floor = 1e-12;
    const logs = off.map((x) => Math.log10(Math.max(x, floor)));
    const [low, high] = minMax(logs);
    const bottom = Math.floor(low);
    const top = Math.max(Math.ceil(high), bottom + 1);
    const left = 46;
    const x = (i) => left + (tiles === 1 ? 0.5 : i / (tiles - 1)) * (w - left - 12);
    const y = (log) => 8 + (h - 22) * (1 - (log - bottom) / (top - bottom));
    g.font = `${Math.round(colours.fontSize * 0.82)}px ${colours.font}`;
    g.textAlign = 'right';
    g.fillStyle = colours.mute.css;
    g.strokeStyle = colours.line.css;
    const every = Math.max(1, Math.ceil((top - bottom) / 4));
    for (let log = bottom; log <= top; log += every) {
      g.fillText(`1e${String(log).replace('-', '−')}`, left - 6, y(log) + 4);
      line(g, [[left, y(log)], [w, y(log)]]);
    }
    g.strokeStyle = colours.gen.css;
    g.lineWidth = 2;
    line(g, logs.map((log, i) => [x(i), y(log)]));
    g.lineWidth = 1;
    g.fillStyle = colours.gen.css;
    if (tiles <= 40) logs.forEach((log, i) => g.fillRect(x(i) - 3, y(log) - 3, 6, 6));
    g.fillStyle = colours.accent.css;
    g.beginPath();
    g.arc(x(this.tile - 1), y(logs[this.tile - 1]), 5, 0, 2 * Math.PI);
    g.fill();
  }

  destroy() {
    clearTimeout(this.settling);
    for (const surface of this.surfaces) surface.destroy();
    this.root.replaceChildren();
    tileWalks.delete(this.parent);
  }
}

/** Smallest and largest; no spread, which a long row would overflow. */
function minMax(values) {
  let low = Infinity;
  let high = -Infinity;
  for (const value of values) {
    if (value < low) low = value;
    if (value > high) high = value;
  }
  return [low, high];
}

function line(g, points) {
  g.beginPath();
  for (const [x, y] of points) g.lineTo(x, y);
  g.stroke();
}

const tileWalks = new WeakMap();

export default function tileWalk({ data, parentElement, setStateValue }) {
  let walk = tileWalks.get(parentElement);
  if (!walk) {
    walk = new TileWalk(parentElement);
    tileWalks.set(parentElement, walk);
  }
  walk.update(data, setStateValue);
  return () => walk.destroy();
}
