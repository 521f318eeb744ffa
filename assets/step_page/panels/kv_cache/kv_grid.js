/**
 * The KV cache: layers down, positions across, in each cell the norm of the key and of the value.
 *
 * The token just drawn is not in the cache yet. Its column is dashed until the next step feeds it.
 */

import { say } from '../../drawing/say.js';
import { make, setText } from '../../drawing/dom.js';
import { formatCount, formatNumber } from '../../drawing/format.js';
import { plainToken } from '../../drawing/pieces.js';
import { tokenAtPosition } from '../../drawing/token_names.js';
import { forgetPalette, paletteOf } from '../../drawing/palette.js';
import { gridOn, makeSurface, reducedMotion } from '../../drawing/canvas.js';
import { afterWrites } from '../../drawing/draw_pass.js';
import { ColumnWindow, panWith } from './column_window.js';
import { makeTooltip } from '../../drawing/tooltip.js';
import { panelFrame, segmentedControl } from '../../drawing/panel_frame.js';
import { dtypeBytes, kvFormula, NormTable } from '../../store/kv_data.js';
import { KvPainter } from './kv_painter.js';
import { CanvasGrid } from '../../drawing/canvas_grid.js';

const KV_SLIDE_MS = 220;

/** Position of a step's first new column and one past its last. */
function kvColumns(step) {
  return [step.kv_len - step.input_ids.length, step.kv_len];
}

class KvPanel {
  constructor(root, store) {
    this.root = root;
    this.store = store;
    this.norms = new NormTable();
    this.columns = new ColumnWindow({ narrowest: 3, spare: 1 });
    this.painter = new KvPainter();
    this.hover = null; // {position, layer}
    this.cursor = null; // the same, moved by keys
    this.slide = null; // {from, start}: columns that are coming in
    this.seen = { epoch: -1, steps: 0 };
    this.frame = panelFrame(root, {
      title: say('kv_grid.title'), name: 'kv', term: 'KV cache', says: say('kv_grid.says'), table: () => this.#table(),
      empty: say('kv_grid.empty'),
    });
    this.#controls();
    const host = make('div.lp-canvas');
    this.legend = make('div.lp-legend');
    this.formula = make('div.lp-formula');
    this.frame.body.append(host);
    this.frame.foot.append(this.legend, this.formula);
    this.surface = makeSurface(host, () => this.#paint());
    this.tip = makeTooltip(root);
    this.pan = panWith(this.surface.canvas, this.columns, this.surface.ask);
    this.#listen(this.surface.canvas);
    this.grid = new CanvasGrid(this.surface.canvas, say('kv_grid.grid'), {
      move: (layers, positions) => this.#move(layers, positions),
      take: () => this.#take(this.cursor),
      enter: () => this.#move(0, 0),
      leave: () => this.hover === this.cursor && this.#point(null),
    });
  }

  #controls() {
    const redraw = (change) => (value) => {
      Object.assign(this.painter, change(value));
      this.surface.paint();
      this.#legend();
    };
    this.frame.bar.append(
      segmentedControl(say('kv_grid.shown'), [['keys', 'K'], ['values', 'V'], ['both', 'both']], 'both',
        redraw((shown) => ({ shown }))).node,
      segmentedControl(say('kv_grid.scale'), [
        ['layer', say('kv_grid.per_layer'), say('kv_grid.per_layer_title')],
        ['all', say('kv_grid.one_scale'), say('kv_grid.one_scale_title')],
      ], 'layer', redraw((scale) => ({ scale }))).node,
    );
  }

  /** @param {{slideMs?: number, namesNext?: boolean}} [how] how long a new column takes to slide in; whether the one to come has a name */
  draw(changes, { slideMs = KV_SLIDE_MS, namesNext = true } = {}) {
    this.namesNext = namesNext;
    const { store } = this;
    if (changes.has('theme')) forgetPalette(this.root);
    this.frame.showEmpty(!store.selected);
    if (!store.selected) {
      this.seen = { epoch: -1, steps: 0 };
      return this.tip.hide();
    }
    if (changes.has('steps')) {
      this.norms.sync(store);
      this.#startSlide(slideMs);
    }
    if (store.sel.step !== this.drawnStep) this.columns.follow = true;
    this.drawnStep = store.sel.step;
    this.#words();
    this.surface.paint();
    this.frame.refreshTable();
    if (this.grid.hasKeys) afterWrites(this, () => this.#move(0, 0)); // beside its cell, once that is painted
    else this.#say(this.cursor ?? { position: store.selected.kv_len - 1, layer: store.sel.layer });
  }

  /** A step that has just come slides in; a session that was loaded whole does not. */
  #startSlide(ms) {
    const { store, seen } = this;
    const grew = store.epoch === seen.epoch && store.steps.length === seen.steps + 1 && store.sel.step === store.newest;
    this.seen = { epoch: store.epoch, steps: store.steps.length };
    this.slide = grew && !reducedMotion() ? { from: kvColumns(store.selected)[0], start: performance.now(), ms } : null;
  }

  #words() {
    const { model, selected: step } = this.store;
    this.frame.note(say('kv_grid.size', { layers: say('counted.layer', { n: model.num_layers }), positions: say('counted.position', { n: step.kv_len }) }));
    const formula = `${kvFormula(model, step.kv_len)} = `;
    const product = step.kv_len * model.kv_bytes_per_token;
    if (!this.bytes) {
      this.bytes = { formula: make('span'), product: make('b'), live: make('span.lp-verdict') };
      this.formula.append(this.bytes.formula, this.bytes.product, this.bytes.live);
    }
    setText(this.bytes.formula, formula);
    setText(this.bytes.product, `${formatCount(product)} B`);
    setText(this.bytes.live, step.kv_bytes === product ? '' : ` ${say('kv_grid.live', { bytes: formatCount(step.kv_bytes) })}`);
    this.#legend();
  }

  /** The two colour ramps with the norms at their ends, for the layer under the pointer or the chosen one. */
  #legend() {
    if (!this.norms.count) return;
    const layer = this.hover?.layer ?? this.store.sel.layer;
    const scale = this.norms.scale();
    const where = this.painter.scale === 'layer' ? say('kv_grid.layer_norms', { layer }) : say('kv_grid.all_norms');
    this.swatches ??= ['keys', 'values'].map((side) => {
      const parts = { low: make('span'), high: make('span') };
      const ramp = make('i.lp-ramp', { data: { side } });
      parts.node = make('span.lp-swatch', {}, make('span', {}, side === 'keys' ? say('kv_grid.key') : say('kv_grid.value')), parts.low, ramp, parts.high);
      return { side, ...parts };
    });
    if (!this.legend.firstChild) {
      this.scaleNote = make('span.lp-scale-note');
      this.legend.append(this.scaleNote, ...this.swatches.map((s) => s.node));
    }
    for (const { side, low, high, node } of this.swatches) {
      const [from, to] = this.painter.scale === 'layer' ? [scale[side].low[layer], scale[side].high[layer]] : scale[side].all;
      setText(low, formatNumber(from));
      setText(high, formatNumber(to));
      node.hidden = this.painter.shown !== 'both' && this.painter.shown !== side;
    }
    setText(this.scaleNote, where);
    this.scaleNote.title = scale.skipsFirst ? say('kv_grid.first_left_out') : '';
  }

  #paint() {
    const { store, surface, columns } = this;
    const step = store.selected;
    if (!step || !this.norms.count) return;
    const progress = this.slide ? Math.min(1, (performance.now() - this.slide.start) / this.slide.ms) : 1;
    if (progress >= 1) this.slide = null;
    this.painter.paint(surface, {
      palette: paletteOf(this.root), norms: this.norms, columns, hover: this.hover,
      layer: store.sel.layer, layers: store.model.num_layers,
      added: kvColumns(step), kvLen: step.kv_len,
      sliding: this.slide ? { ...this.slide, progress } : null,
      label: (position) => (position < step.kv_len || this.namesNext ? plainToken(store.tokens[position]) : '?'),
    });
    if (this.slide) surface.ask();
  }

  #listen(canvas) {
    const move = (event) => {
      const cell = this.painter.cellAt(event.offsetX, event.offsetY);
      const moved = cell?.position !== this.hover?.position || cell?.layer !== this.hover?.layer;
      this.hover = cell;
      if (cell) this.#tell(event, cell);
      else this.tip.hide();
      if (!moved) return;
      this.surface.ask();
      this.#legend();
    };
    canvas.addEventListener('pointermove', move);
    canvas.addEventListener('pointerleave', () => this.#point(null));
    canvas.addEventListener('click', (event) => {
      if (!this.pan.moved()) this.#take(this.painter.cellAt(event.offsetX, event.offsetY));
    });
  }

  /** Look at the step that appended a cell, and at its layer. */
  #take(cell) {
    if (!cell || cell.position >= this.norms.count) return;
    this.store.select({ step: this.norms.stepOf[cell.position], layer: cell.layer });
  }

  #point(cell) {
    this.hover = cell;
    if (!cell) this.tip.hide();
    this.surface.ask();
    this.#legend();
  }

  /** Move the cursor by keys; the column after the last is the token that is not cached yet. */
  #move(layers, positions) {
    const { store, norms } = this;
    if (!store.selected) return;
    const from = this.cursor ?? { position: store.selected.kv_len - 1, layer: store.sel.layer };
    const within = (value, end) => Math.max(0, Math.min(end, value));
    this.cursor = { position: within(from.position + positions, norms.count), layer: within(from.layer + layers, norms.layers - 1) };
    this.columns.show(Math.min(this.cursor.position, norms.count - 1));
    this.#point(this.cursor);
    this.surface.paint();
    const box = this.surface.canvas.getBoundingClientRect();
    const { x, y } = this.painter.placeOf(this.cursor);
    this.#tell({ clientX: box.left + x, clientY: box.top + y }, this.cursor);
    this.#say(this.cursor);
  }

  #say({ position, layer }) {
    const { store, norms } = this;
    const token = store.tokens[position] ? tokenAtPosition(store.tokens, position) : say('kv_grid.position', { position });
    const at = position * norms.layers + layer;
    const words = position < norms.count
      ? say('kv_grid.cell', { token, layer, key: formatNumber(norms.keys[at]), norm: formatNumber(norms.values[at]), step: norms.stepOf[position] })
      : say('kv_grid.cell_not_cached', { token });
    this.grid.say({ row: layer, column: position, rows: norms.layers, columns: norms.count + 1, words });
  }

  #tell(event, { position, layer }) {
    const { store, norms } = this;
    const { model } = store;
    const token = store.tokens[position];
    if (position >= norms.count) {
      const title = token ? tokenAtPosition(store.tokens, position) : say('kv_grid.position', { position });
      this.tip.show(event.clientX, event.clientY, title, [], say('kv_grid.not_cached'));
      return;
    }
    const heads = norms.heads(position, layer);
    const perHead = (list) => list.map((norm) => formatNumber(norm)).join(' · ');
    const at = position * norms.layers + layer;
    const bytes = 2 * model.num_kv_heads * model.head_dim * dtypeBytes(model);
    this.tip.show(event.clientX, event.clientY, say('kv_grid.where', { token: tokenAtPosition(store.tokens, position), layer }), [
      [say('kv_grid.key_norm'), formatNumber(norms.keys[at])],
      [say('kv_grid.by_kv_head'), perHead(heads.keys)],
      [say('kv_grid.value_norm'), formatNumber(norms.values[at])],
      [say('kv_grid.by_kv_head'), perHead(heads.values)],
      ['bytes', say('kv_grid.bytes', { bytes: formatCount(bytes), all: formatCount(bytes * model.num_layers) })],
      [say('kv_grid.appended_by'), say('kv_grid.step', { step: norms.stepOf[position] })],
    ]);
  }

  #table() {
    const { store, norms } = this;
    const layer = store.sel.layer;
    const count = store.selected ? Math.min(norms.count, store.selected.kv_len) : 0;
    return {
      caption: say('kv_grid.caption', { step: store.sel.step, layer }),
      columns: ['position', 'token', say('kv_grid.key_norm'), say('kv_grid.value_norm'), say('kv_grid.by_step'), 'id'],
      rows: Array.from({ length: count }, (_, p) => [
        p, plainToken(store.tokens[p]), formatNumber(norms.keys[p * norms.layers + layer]), formatNumber(norms.values[p * norms.layers + layer]),
        norms.stepOf[p], store.tokens[p]?.id ?? '',
      ]),
    };
  }

  destroy() {
    this.pan.destroy();
    this.surface.destroy();
  }
}

/** @param {HTMLElement} root an empty element */
export function kvPanel(root, store) {
  const panel = new KvPanel(root, store);
  return {
    draw: (changes, how) => panel.draw(changes, how),
    destroy: () => panel.destroy(),
    grid: () => gridOn(panel.surface, panel.painter.box),
  };
}
