/** Drawing of the time bars. The prefill has its own room and its own scale; decode steps share one axis. */

import { say } from '../../drawing/say.js';
import { mixColour } from '../../drawing/palette.js';
import { fitLabel, slantLabel } from '../../drawing/canvas.js';
import { formatMs } from '../../drawing/format.js';

/** From the bottom of a bar to its top. */
export const TIMING_PARTS = [
  { name: say('timing_painter.forward_name'), field: 'forward', says: say('timing_painter.forward') },
  { name: say('timing_painter.sampling_name'), field: 'sample', says: say('timing_painter.sample') },
  { name: say('timing_painter.other_name'), field: 'other', says: say('timing_painter.other') },
  { name: say('timing_painter.wait_name'), field: 'wait', says: say('timing_painter.wait') },
];

const MOST_STEPS_SHOWN = 60;

/** The next of 1, 2, 2.5, 5 times a power of ten. */
export function niceCeiling(value) {
  const power = 10 ** Math.floor(Math.log10(Math.max(value, 1e-6)));
  return [1, 1.5, 2, 2.5, 3, 4, 5, 7.5, 10].map((factor) => factor * power).find((candidate) => candidate >= value * 1.001);
}

export class TimingPainter {
  #at = null;

  /** @param view {palette, columns, steps, chosen, hover, label: (step) => string, floor: (step) => ms, 0 where not known} */
  paint(surface, view) {
    const { g, w, h, dpr } = surface;
    const size = view.palette.label;
    const apart = Math.ceil(size * 7.4);
    const at = { size, apart, left: apart + Math.ceil(size * 4.8), top: size * 1.7, bottom: h - size * 1.8, width: w };
    const { columns, steps } = view;
    columns.narrowest = Math.max(5, (w - at.left) / MOST_STEPS_SHOWN);
    columns.widest = size * 4.6;
    columns.fit(Math.max(1, steps.length - 1), w - at.left - 4, dpr, Math.max(0, view.chosen - 1));
    this.#at = { ...at, columns, count: steps.length };
    g.font = `${size}px ${view.palette.font}`;
    const inView = steps.slice(1 + columns.first, 1 + columns.end).filter((step) => step.timing_ms);
    const most = Math.max(...inView.map((step) => step.timing_ms.total), 0);
    const top = niceCeiling(most || 100);
    this.#axis(g, view.palette, top);
    this.#prefill(g, view);
    for (let index = columns.first; index < columns.end && index + 1 < steps.length; index++) this.#step(g, view, steps[index + 1], top);
    if (steps.length === 1) this.#text(g, say('timing_painter.decode_here'), at.left + 12, (at.top + at.bottom) / 2, 'left', view.palette.mute);
  }

  /** @returns {number | null} index of the step whose bar is at x */
  stepAt(x) {
    if (!this.#at) return null;
    const { apart, left, columns, count } = this.#at;
    if (x < apart) return 0;
    if (x < left) return null;
    const step = 1 + columns.first + Math.floor((x - left) / columns.width);
    return step < count && step <= columns.end ? step : null;
  }

  #text(g, text, x, y, align, colour) {
    g.textAlign = align;
    g.textBaseline = 'middle';
    g.fillStyle = colour.css;
    g.fillText(text, x, y);
  }

  #axis(g, palette, top) {
    const { left, width } = this.#at;
    for (const part of [0, 0.5, 1]) {
      const y = Math.round(this.#y(part));
      g.fillStyle = (part ? palette.grid : palette.line).css;
      g.fillRect(left, y, width - left, 1);
      this.#text(g, part ? formatMs(top * part).replace('.0 ', ' ') : '0', left - 8, y, 'right', palette.mute);
    }
    g.fillStyle = palette.line.css;
    g.fillRect(this.#at.apart, this.#at.top, 1, this.#at.bottom - this.#at.top);
  }

  #y(share) {
    const { top, bottom } = this.#at;
    return bottom - share * (bottom - top);
  }

  #colours(palette, strong) {
    const tone = strong ? 1 : 0.78;
    return {
      forward: mixColour(palette.card, palette.accent, tone), sample: mixColour(palette.card, palette.text, tone * 0.85),
      other: mixColour(palette.card, palette.mute, tone * 0.75), wait: mixColour(palette.card, palette.faint, tone * 0.45),
    };
  }

  /** The part of a bar that no step could do without: hatched off from the rest by a line that stands out of the bar. */
  #floor(g, palette, ms, x, width, scale, strong) {
    if (!ms) return;
    const height = Math.min(ms * scale, this.#at.bottom - this.#at.top);
    g.fillStyle = mixColour(palette.accent, palette.text, strong ? 0.45 : 0.3).css;
    g.fillRect(x, this.#at.bottom - height, width, height);
    g.fillStyle = palette.text.css;
    g.fillRect(x - 2, Math.round(this.#at.bottom - height) - 1, width + 4, 2);
  }

  /** One stacked bar of a given height for the whole. */
  #bar(g, palette, step, x, width, scale, strong) {
    const colours = this.#colours(palette, strong);
    let y = this.#at.bottom;
    for (const { field } of TIMING_PARTS) {
      const height = step.timing_ms[field] * scale;
      if (height <= 0) continue;
      g.fillStyle = colours[field].css;
      g.fillRect(x, y - height, width, height);
      y -= height;
    }
    return y;
  }

  #prefill(g, { palette, steps, chosen, hover, floor }) {
    const { size, top, bottom, apart } = this.#at;
    const step = steps[0];
    const width = size * 3.6;
    const x = (apart - width) / 2;
    const middle = apart / 2;
    this.#text(g, say('counted.token', { n: step.input_ids.length }), middle, bottom + size * 0.95, 'center', chosen === 0 ? palette.text : palette.mute);
    if (!step.timing_ms) return this.#untimed(g, palette, x, width, chosen === 0);
    const room = bottom - top;
    const scale = (room * 0.92) / Math.max(step.timing_ms.total, 1e-6);
    const y = this.#bar(g, palette, step, x, width, scale, chosen === 0 || hover === 0);
    this.#floor(g, palette, floor(step), x, width, scale, chosen === 0);
    this.#breakMark(g, palette, x, width, bottom - room * 0.4);
    this.#outline(g, palette, x, y, width, chosen === 0);
    return this.#text(g, `prefill ${formatMs(step.timing_ms.total)}`, middle, y - size * 0.75, 'center', palette.text);
  }

  /** A broken bar: not on the axis beside it. */
  #breakMark(g, palette, x, width, y) {
    g.strokeStyle = palette.card.css;
    g.lineWidth = 3;
    g.beginPath();
    const teeth = 6;
    for (let i = 0; i <= teeth; i++) g.lineTo(x - 1 + ((width + 2) * i) / teeth, y + (i % 2 ? -3 : 3));
    g.stroke();
  }

  #untimed(g, palette, x, width, strong) {
    g.save();
    g.setLineDash([3, 3]);
    g.strokeStyle = (strong ? palette.text : palette.faint).css;
    g.lineWidth = 1;
    g.strokeRect(x + 0.5, this.#y(0.3), width - 1, this.#at.bottom - this.#y(0.3));
    g.restore();
  }

  #outline(g, palette, x, y, width, chosen) {
    if (!chosen) return;
    g.strokeStyle = palette.text.css;
    g.lineWidth = 2;
    g.strokeRect(x - 2, y - 2, width + 4, this.#at.bottom - y + 3);
  }

  #step(g, view, step, top) {
    const { palette, columns, chosen, hover } = view;
    const { left, size, bottom, top: ceiling } = this.#at;
    const gap = columns.width > 12 ? 5 : columns.width > 6 ? 2 : 1;
    const x = left + (step.index - 1 - columns.first) * columns.width + gap;
    const width = columns.width - gap;
    const isChosen = step.index === chosen;
    const strong = isChosen || step.index === hover;
    if (!step.timing_ms) return this.#untimed(g, palette, x, width, strong);
    const y = this.#bar(g, palette, step, x, width, (bottom - ceiling) / top, strong);
    this.#floor(g, palette, view.floor(step), x, width, (bottom - ceiling) / top, strong);
    this.#outline(g, palette, x, y, width, isChosen);
    const middle = x + width / 2;
    const wide = columns.width >= size * 2.4;
    if (wide || strong) this.#text(g, formatMs(step.timing_ms.total).replace(' ms', ''), middle, y - size * 0.75, 'center', strong ? palette.text : palette.mute);
    if (step.batch_size > 1 && wide) this.#text(g, `×${step.batch_size}`, middle, bottom - size * 0.8, 'center', palette.card);
    const every = Math.max(1, Math.ceil((size * 2.2) / columns.width));
    if (!wide && !strong && step.index % every) return undefined;
    if (!wide && strong) return undefined;
    g.textBaseline = 'middle';
    g.fillStyle = (strong ? palette.text : palette.mute).css;
    return slantLabel(g, wide ? fitLabel(g, view.label(step), columns.width - 3) : String(step.index), middle, bottom + size * 0.95, 0, 'center');
  }
}
