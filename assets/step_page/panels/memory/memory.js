/**
 * Where the bytes are: what the formula says, what our live tensors add up to, and what the process holds.
 *
 * The first two must be equal. The third is asked of the system and holds much more: the interpreter, the libraries
 * and free memory that was not given back.
 */

import { say, sayNodes } from '../../drawing/say.js';
import { make, setText } from '../../drawing/dom.js';
import { formatBytes, formatCount } from '../../drawing/format.js';
import { forgetPalette, mixColour, paletteOf } from '../../drawing/palette.js';
import { makeSurface } from '../../drawing/canvas.js';
import { makeTooltip } from '../../drawing/tooltip.js';
import { panelFrame } from '../../drawing/panel_frame.js';
import { kvFormula } from '../../store/kv_data.js';

const MEMORY_PARTS = [
  { name: 'weights', label: say('memory.weights'), field: 'weight_bytes', says: say('memory.weights_says') },
  { name: 'kv-live', label: say('memory.live'), field: 'kv_live_bytes', says: say('memory.live_says') },
  { name: 'kv-reserved', label: say('memory.reserved'), field: 'kv_reserved_bytes', says: say('memory.reserved_says') },
  { name: 'capture', label: say('memory.capture'), field: 'capture_bytes', says: say('memory.capture_says') },
];

class MemoryPanel {
  constructor(root, store) {
    this.root = root;
    this.store = store;
    this.hover = null;
    this.frame = panelFrame(root, {
      title: say('memory.title'), name: 'memory', term: 'weights', says: say('memory.says'), table: () => this.#table(), empty: say('memory.empty'),
    });
    this.frame.note(say('memory.note'));
    this.bar = make('div.lp-memory-bar', { role: 'img', 'aria-label': say('memory.bar') });
    this.keys = {};
    const legend = make('div.lp-legend');
    for (const { name, label, says } of [...MEMORY_PARTS, { name: 'process', label: say('memory.process'), says: say('memory.process_says') }]) {
      this.keys[name] = make('b');
      legend.append(make('span.lp-key', { title: says }, make('i', { data: { part: name } }), `${label} `, this.keys[name]));
    }
    this.segments = ['weights', 'capture', 'kv-reserved', 'rest'].map((part) => make('i', { data: { part } }));
    this.bar.append(...this.segments);
    const host = make('div.lp-canvas', { role: 'img', 'aria-label': say('memory.chart') });
    this.frame.body.append(this.bar, legend, host);
    this.surface = makeSurface(host, () => this.#paint());
    this.tip = makeTooltip(root);
    this.adds = make('div.lp-formula');
    this.agree = make('div.lp-agree');
    this.frame.foot.append(this.adds, this.agree);
    this.#listen(this.surface.canvas);
  }

  draw(changes) {
    const { store } = this;
    if (changes.has('theme')) forgetPalette(this.root);
    const step = store.selected;
    this.frame.showEmpty(!step);
    if (!step) return this.tip.hide();
    this.#words(step);
    this.surface.paint();
    return this.frame.refreshTable();
  }

  /** What holds the tensors: the CUDA allocator where there is one, else the process. */
  #holder(memory) {
    return memory.device_allocated_bytes ?? memory.process_bytes ?? 0;
  }

  #words({ memory, kv_len: length }) {
    const { model } = this.store;
    for (const { name, field } of MEMORY_PARTS) setText(this.keys[name], formatBytes(memory[field]));
    setText(this.keys.process, formatBytes(memory.process_bytes));
    const held = [memory.weight_bytes, memory.capture_bytes, memory.kv_reserved_bytes];
    const total = Math.max(this.#holder(memory), held.reduce((sum, bytes) => sum + bytes, 0));
    const rest = total - held.reduce((sum, bytes) => sum + bytes, 0);
    this.segments.forEach((segment, i) => {
      segment.style.flexGrow = String([...held, rest][i] / total);
    });
    if (!this.addWords) {
      this.addWords = { formula: make('span'), product: make('b') };
      this.adds.append(...sayNodes('memory.adds', this.addWords));
      this.agreeWords = { verdict: make('b.lp-verdict'), words: make('span') };
      this.agree.append(this.agreeWords.verdict, ' ', this.agreeWords.words);
    }
    setText(this.addWords.formula, kvFormula(model));
    setText(this.addWords.product, `${formatCount(model.kv_bytes_per_token)} B`);
    const off = memory.kv_live_bytes - memory.kv_formula_bytes;
    this.agree.dataset.equal = String(off === 0);
    setText(this.agreeWords.verdict, off === 0 ? say('memory.equal') : say('memory.differ', { bytes: formatCount(Math.abs(off)) }));
    const holder = memory.device_allocated_bytes === null ? say('memory.process') : say('memory.cuda');
    const both = say('memory.formula_and_live', { formula: formatCount(memory.kv_formula_bytes), live: formatCount(memory.kv_live_bytes) });
    setText(this.agreeWords.words, `${both} · ${say('memory.measured_apart', { name: holder, size: formatBytes(this.#holder(memory)) })}`);
    this.agree.title = say('memory.adds_title', { n: length });
  }

  /** The cache growing step by step: live bytes as stairs, the reserved buffer as a line above. */
  #paint() {
    const { store } = this;
    if (!store.selected) return;
    const { g, w, h } = this.surface;
    const palette = paletteOf(this.root);
    const size = palette.label;
    const { steps } = store;
    const most = Math.max(...steps.map(({ memory }) => Math.max(memory.kv_reserved_bytes, memory.kv_live_bytes)), 1);
    const top = size * 1.5;
    const bottom = h - size * 1.5;
    const wide = w / Math.max(12, steps.length);
    const y = (bytes) => bottom - (bytes / most) * (bottom - top);
    this.at = { wide };
    g.font = `${size}px ${palette.font}`;
    g.textBaseline = 'middle';
    steps.forEach(({ memory, index }) => {
      const later = index > store.sel.step ? 0.3 : 1;
      const chosen = index === store.sel.step || index === this.hover;
      const gap = wide > 6 ? 2 : 0;
      g.globalAlpha = later;
      g.fillStyle = mixColour(palette.card, palette.k, 0.22).css;
      g.fillRect(index * wide, y(memory.kv_reserved_bytes), wide - gap, bottom - y(memory.kv_reserved_bytes));
      g.fillStyle = mixColour(palette.card, palette.k, chosen ? 1 : 0.75).css;
      const live = Math.max(1, bottom - y(memory.kv_live_bytes));
      g.fillRect(index * wide, bottom - live, wide - gap, live);
    });
    g.globalAlpha = 1;
    g.fillStyle = palette.line.css;
    g.fillRect(0, Math.round(bottom), w, 1);
    this.#labels(g, palette, { size, top, bottom, wide, w });
  }

  #labels(g, palette, { size, bottom, wide, w }) {
    const { store } = this;
    const { memory } = store.selected;
    g.fillStyle = palette.mute.css;
    g.textAlign = 'left';
    g.fillText(say('memory.chart_title'), 0, size * 0.7);
    const words = say('memory.step', { step: store.sel.step, live: formatBytes(memory.kv_live_bytes), reserved: formatBytes(memory.kv_reserved_bytes) });
    const half = g.measureText(words).width / 2;
    g.fillStyle = palette.text.css;
    g.textAlign = 'center';
    g.fillText(words, Math.max(half, Math.min(w - half, (store.sel.step + 0.5) * wide)), bottom + size * 0.9);
  }

  #listen(canvas) {
    canvas.addEventListener('pointermove', (event) => {
      const index = Math.floor(event.offsetX / (this.at?.wide ?? 1));
      const step = this.store.steps[index];
      this.hover = step ? index : null;
      if (step) {
        const rows = MEMORY_PARTS.map(({ label, field }) => [label, formatBytes(step.memory[field])]);
        this.tip.show(event.clientX, event.clientY, say('memory.after', { step: index }), [...rows, [say('memory.process'), formatBytes(step.memory.process_bytes)]], say('memory.measured'));
      } else this.tip.hide();
      this.surface.ask();
    });
    canvas.addEventListener('pointerleave', () => {
      this.hover = null;
      this.tip.hide();
      this.surface.ask();
    });
    canvas.addEventListener('click', () => this.hover !== null && this.store.select({ step: this.hover }));
  }

  #table() {
    return {
      caption: say('memory.caption'),
      columns: [say('memory.step_column'), say('memory.kv_by_formula'), say('memory.live'), say('memory.reserved'), say('memory.capture'), say('memory.weights'), say('memory.process'), say('memory.cuda')],
      rows: this.store.steps.map(({ index, memory }) => [
        index, ...['kv_formula_bytes', 'kv_live_bytes', 'kv_reserved_bytes', 'capture_bytes', 'weight_bytes', 'process_bytes', 'device_allocated_bytes']
          .map((field) => (memory[field] === null ? '–' : `${formatCount(memory[field])} B`)),
      ]),
    };
  }

  destroy() {
    this.surface.destroy();
  }
}

/** @param {HTMLElement} root an empty element */
export function memoryPanel(root, store) {
  const panel = new MemoryPanel(root, store);
  return { draw: (changes) => panel.draw(changes), destroy: () => panel.destroy() };
}
