/**
 * One head large: the rows of all steps so far as a growing triangle, and the last row as bars over its keys.
 *
 * Rows are queries, columns are keys. The prompt is one forward but many rows, so its last row alone belongs to step 0.
 */

import { colourRamp, mixColour, pixelOf, rampAt } from '../../drawing/palette.js';
import { fitLabel, Raster, slantLabel } from '../../drawing/canvas.js';
import { attentionScale } from '../../store/attention_data.js';
import { formatProb } from '../../drawing/format.js';

const HEAD_TICKS = { linear: [0, 0.25, 0.5, 0.75, 1], root: [0, 0.01, 0.1, 0.25, 0.5, 1] };

const LOWEST_ROW = 3;
const SINK_WIDTH = 12;

/** Heights of the parts in CSS pixels: column labels at the bottom, bars above them, the triangle in the room that is left. */
function headLayout(h, size, isMap = false) {
  const top = Math.ceil(size * 2.6);
  const labels = Math.ceil(size * 3.9);
  const bars = isMap ? Math.max(40, Math.round((h - top - labels) * 0.25)) : Math.max(70, Math.round((h - top - labels) * 0.44));
  return { top, labels, bars, left: Math.ceil(size * 5.6), room: h - top - labels - bars - size * 1.7 };
}

/** How many rows of the triangle can be on screen at most. */
export function mostHeadRows(h, size, isMap = false) {
  return Math.max(1, Math.ceil(headLayout(h, size, isMap).room / (isMap ? 1 : LOWEST_ROW)));
}

export class HeadPainter {
  scale = 'root'; // or 'linear'
  #raster = new Raster();
  #ramp = null;
  #at = null;

  /**
   * @param view {palette, columns, rows: [{position, values: Float32Array|null, current}], values, pooled, keys, hidesFirst,
   *   isMap: the rows are the whole prompt's, so they get the room and may be a pixel high, sink, hover, label: (position) => string}
   */
  paint(surface, view) {
    const { g, w, h, dpr } = surface;
    const size = view.palette.label;
    const { left, top, labels, bars, room } = headLayout(h, size, view.isMap);
    view.columns.widest = Math.max(size * 2.45, w / 16);
    view.columns.fit(view.keys, w - left - 4, dpr, view.keys - 1);
    const square = Math.min(size * 1.85, Math.max(view.columns.width, size * 1.25)); // narrow columns still get rows that can be read
    const row = Math.max(view.isMap ? 1 : LOWEST_ROW, Math.min(square, room / Math.max(1, view.rows.length)));
    const rowPixels = Math.max(1, Math.floor(row * dpr));
    const fits = Math.max(1, Math.floor((room * dpr) / rowPixels));
    const shown = view.rows.slice(-fits);
    this.#at = { left, top, size, row: rowPixels / dpr, shown, barTop: h - labels - bars, barHeight: bars, columns: view.columns };
    g.font = `${size}px ${view.palette.font}`;
    this.#triangle(surface, view, rowPixels);
    this.#bars(g, w, view);
  }

  /** What is at a point: {row, key} in the triangle, {key} in the bars, or null. */
  at(x, y) {
    if (!this.#at) return null;
    const { left, top, row, shown, columns, barTop, barHeight } = this.#at;
    const key = columns.first + Math.floor((x - left) / columns.width);
    const line = Math.floor((y - top) / row);
    if (line >= 0 && line < shown.length && x < left + columns.visible * columns.width) {
      return { row: shown[line], key: x >= left && key < (shown[line].values?.length ?? 0) ? key : null };
    }
    return x >= left && key < columns.end && y >= barTop && y <= barTop + barHeight ? { row: null, key } : null;
  }

  #x(key) {
    return this.#at.left + (key - this.#at.columns.first) * this.#at.columns.width;
  }

  #triangle(surface, view, rowPixels) {
    const { g, dpr } = surface;
    const { palette, columns } = view;
    const { left, top, size, row, shown } = this.#at;
    if (this.#ramp?.palette !== palette) this.#ramp = { palette, pixels: colourRamp(palette.grid, palette.accent) };
    const width = Math.round(columns.width * dpr);
    const gap = width >= 5 * dpr ? Math.round(dpr) : 0;
    const gapY = rowPixels >= 5 * dpr ? Math.round(dpr) : 0;
    const scaled = attentionScale(this.scale);
    const absent = pixelOf(mixColour(palette.card, palette.line, 0.5));
    this.#raster.begin(g, width * columns.visible, rowPixels * shown.length);
    shown.forEach((line, i) => {
      const end = Math.min(columns.end, line.values?.length ?? line.position + 1);
      for (let key = columns.first; key < end; key++) {
        const pixel = line.values ? rampAt(this.#ramp.pixels, scaled(line.values[key])) : absent;
        this.#raster.rect((key - columns.first) * width, i * rowPixels, width - gap, rowPixels - gapY, pixel);
      }
    });
    this.#raster.commit(g, Math.round(left * dpr), Math.round(top * dpr));
    g.textBaseline = 'middle';
    g.textAlign = 'right';
    g.fillStyle = palette.mute.css;
    g.fillText('query ↓', left - 8, size * 0.8);
    g.textAlign = 'left';
    g.fillText('key →', left, size * 0.8);
    this.#queryLabels(g, view);
    const current = shown.findIndex((line) => line.current);
    if (current < 0) return;
    const end = Math.min(columns.end, shown[current].position + 1);
    g.strokeStyle = palette.text.css;
    g.lineWidth = 2;
    g.strokeRect(left - 1.5, top + current * row - 1.5, (end - columns.first) * columns.width + 2, row + 2);
  }

  #queryLabels(g, { palette, label, hover }) {
    const { left, top, size, row, shown } = this.#at;
    const every = Math.max(1, Math.ceil((size * 1.15) / row));
    g.textAlign = 'right';
    shown.forEach((line, i) => {
      const strong = line.current || line === hover?.row;
      const fromEnd = shown.length - 1 - i;
      if (!strong && (fromEnd % every || fromEnd < every)) return;
      g.fillStyle = strong ? palette.text.css : palette.mute.css;
      g.fillText(fitLabel(g, label(line.position), left - 14), left - 8, top + (i + 0.5) * row);
    });
  }

  #bars(g, w, view) {
    const { palette, columns } = view;
    const { left, size, barTop, barHeight } = this.#at;
    const scaled = attentionScale(this.scale);
    g.textAlign = 'right';
    g.textBaseline = 'middle';
    let last = Infinity; // height of the number before: the next one needs room
    for (const tick of HEAD_TICKS[this.scale]) {
      const y = barTop + barHeight * (1 - scaled(tick));
      g.fillStyle = palette.line.css;
      g.fillRect(left, Math.round(y), w - left, 1);
      g.fillStyle = palette.mute.css;
      if (last - y < size * 1.05) continue;
      g.fillText(String(tick), left - (view.sink > 0 ? SINK_WIDTH + 10 : 8), y);
      last = y;
    }
    if (view.sink > 0) this.#sink(g, view, scaled);
    if (!view.values) return;
    if (view.pooled) return this.#pooledBars(g, w, view, scaled);
    const gap = columns.width >= 9 ? 3 : columns.width >= 4 ? 1 : 0;
    for (let key = columns.first; key < columns.end; key++) {
      const value = view.values[key];
      const x = this.#x(key);
      const height = Math.max(value > 0 ? 1 : 0, barHeight * scaled(value));
      g.fillStyle = key === view.hover?.key ? palette.text.css : palette.accent.css;
      g.fillRect(x, barTop + barHeight - height, columns.width - gap, height);
      if (view.hidesFirst && key === 0) this.#hatch(g, palette, x, columns.width - gap);
    }
    this.#values(g, w, view, scaled);
    this.#keyLabels(g, view, w);
    g.fillStyle = palette.faint.css;
    g.fillRect(left, barTop + barHeight, w - left, 1);
  }

  /** The weight a head gave to no token at all. */
  #sink(g, { palette, sink }, scaled) {
    const { left, barTop, barHeight, size } = this.#at;
    const height = barHeight * scaled(sink);
    g.fillStyle = palette.template.css;
    g.fillRect(left - SINK_WIDTH - 3, barTop + barHeight - height, SINK_WIDTH, height);
    g.textAlign = 'right';
    g.fillText(`sink ${formatProb(sink)}`, left - 4, barTop + barHeight + size);
  }

  #hatch(g, palette, x, width) {
    const { barTop, barHeight } = this.#at;
    g.save();
    g.beginPath();
    g.rect(x, barTop, width, barHeight);
    g.clip();
    g.strokeStyle = palette.faint.css;
    g.globalAlpha = 0.6;
    g.beginPath();
    for (let y = barTop - width; y < barTop + barHeight + width; y += 7) {
      g.moveTo(x, y + width);
      g.lineTo(x + width, y);
    }
    g.stroke();
    g.restore();
  }

  #pooledBars(g, w, { palette, values }, scaled) {
    const { left, barTop, barHeight } = this.#at;
    const width = (w - left) / values.length;
    g.fillStyle = palette.accent.css;
    g.globalAlpha = 0.6;
    values.forEach((value, bin) => {
      const height = barHeight * scaled(value);
      g.fillRect(left + bin * width, barTop + barHeight - height, Math.max(1, width - 1), height);
    });
    g.globalAlpha = 1;
  }

  /** Numbers over the bars: all that fit, or the largest where columns are narrow. */
  #values(g, w, { palette, values, columns }, scaled) {
    const { left, barTop, barHeight, size } = this.#at;
    const wide = columns.width >= size * 1.75;
    const order = Array.from({ length: columns.end - columns.first }, (_, i) => columns.first + i)
      .filter((key) => values[key] >= (wide ? 0.005 : 0.03)).sort((a, b) => values[b] - values[a]);
    const taken = [];
    g.textAlign = 'center';
    g.textBaseline = 'alphabetic';
    g.fillStyle = palette.text.css;
    for (const key of order.slice(0, wide ? undefined : 12)) {
      const x = this.#x(key) + columns.width / 2 - 1;
      if (taken.some((other) => Math.abs(other - x) < (wide ? 1 : size * 1.9))) continue;
      taken.push(x);
      const text = values[key] > 0.995 ? formatProb(values[key]) : values[key].toFixed(2).slice(1);
      g.fillText(text, Math.max(left + size * 0.8, Math.min(x, w - size)), Math.max(barTop - 2, barTop + barHeight * (1 - scaled(values[key])) - 4));
    }
  }

  #keyLabels(g, { palette, columns, label, hover, keys }, w) {
    const { barTop, barHeight, size } = this.#at;
    const every = Math.max(1, Math.ceil((size * 1.15) / columns.width));
    g.textBaseline = 'middle';
    for (let key = columns.first; key < columns.end; key++) {
      const strong = key === hover?.key;
      const fromEnd = keys - 1 - key;
      if (!strong && fromEnd % every) continue;
      const x = this.#x(key) + columns.width / 2 - 1;
      g.fillStyle = strong || key === keys - 1 ? palette.text.css : palette.mute.css;
      slantLabel(g, fitLabel(g, label(key), size * 4.6), x + 2, barTop + barHeight + size * 0.8, -0.7, 'right');
    }
  }
}
