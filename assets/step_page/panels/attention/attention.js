/**
 * Which cached keys each head of each layer read in the selected step.
 *
 * Moving over layers and heads asks for nothing: the whole step is here. Steps that came without their weights are
 * replayed by the engine once somebody looks at them.
 */

import { say } from '../../drawing/say.js';
import { make, setText } from '../../drawing/dom.js';
import { formatProb } from '../../drawing/format.js';
import { plainToken } from '../../drawing/pieces.js';
import { tokenAtPosition } from '../../drawing/token_names.js';
import { forgetPalette, paletteOf } from '../../drawing/palette.js';
import { gridOn, makeSurface } from '../../drawing/canvas.js';
import { ColumnWindow, panWith } from '../kv_cache/column_window.js';
import { makeTooltip } from '../../drawing/tooltip.js';
import { panelFrame, segmentedControl, toggleButton } from '../../drawing/panel_frame.js';
import { AttentionRows, HEAD_MEAN, pooledLines, withoutFirst } from '../../store/attention_data.js';
import { attentionTable } from './attention_table.js';
import { tellWeight } from './attention_tip.js';
import { ThumbPainter } from './attention_thumbs.js';
import { HeadPainter, mostHeadRows } from './attention_head.js';
import { CanvasGrid } from '../../drawing/canvas_grid.js';

const ATTENTION_SETTLE_MS = 160; // scrubbing past a step is not looking at it
const NARROWEST_KEY = 3; // pixels; one where the whole prompt's map is to fit
const SINK_SHOWN = 0.005; // float16 rows sum to 1 within a tenth of this

class AttentionPanel {
  constructor(root, store) {
    this.root = root;
    this.store = store;
    this.rows = new AttentionRows(store, () => {
      this.#redraw();
      store.emit(new Set(['attention']));
    });
    this.thumbs = new ThumbPainter();
    this.head = new HeadPainter();
    this.columns = new ColumnWindow({ narrowest: NARROWEST_KEY });
    this.mean = false;
    this.hidesFirst = false;
    this.preview = null; // the head under the pointer
    this.hover = null; // {row, key} in the large view
    this.frame = panelFrame(root, {
      title: say('attention.title'), name: 'attention', term: 'attention', says: say('attention.says'), table: () => this.#table(),
      empty: say('attention.empty'),
    });
    this.#build();
    this.#controls();
    this.tip = makeTooltip(root);
    this.pan = panWith(this.headSurface.canvas, this.columns, this.headSurface.ask);
    this.#listenThumbs(this.thumbSurface.canvas);
    this.#listenHead(this.headSurface.canvas);
  }

  #build() {
    const thumbs = make('div.lp-canvas.lp-thumbs');
    const head = make('div.lp-canvas.lp-one-head');
    this.cover = make('div.lp-cover', { role: 'status' });
    this.frame.body.append(thumbs, head, this.cover);
    this.thumbSurface = makeSurface(thumbs, () => this.#paintThumbs());
    this.headSurface = makeSurface(head, () => this.#paintHead());
    this.grid = new CanvasGrid(this.thumbSurface.canvas, say('attention.grid'), {
      move: (layers, heads) => this.#choose(layers, heads),
    });
    this.headSurface.canvas.setAttribute('role', 'img');
    this.where = make('span.lp-where');
    this.shares = make('span.lp-shares');
    this.altered = make('span.lp-tag.lp-altered');
    this.frame.foot.append(this.where, this.shares, this.altered);
  }

  #controls() {
    const flip = (name) => (on) => {
      this[name] = on;
      this.#redraw();
    };
    this.triangleButton = toggleButton(say('attention.triangle'), say('attention.triangle_title'), (on) => {
      this.triangle = on;
      this.#redraw();
    });
    this.triangleButton.classList.add('lp-triangle');
    this.triangleButton.dataset.live = '';
    this.frame.bar.append(
      segmentedControl('scale', [['root', '√ scale', say('attention.root_title')], ['linear', 'linear']], 'root', (name) => {
        this.head.scale = name;
        this.#redraw();
      }).node,
      toggleButton(say('attention.mean'), say('attention.mean_title'), flip('mean')),
      toggleButton(say('attention.hide_first'), say('attention.hide_first_title'), flip('hidesFirst')),
      this.triangleButton,
    );
  }

  get shown() {
    const { layer, head } = this.preview ?? this.store.sel;
    return { layer, head: this.mean ? HEAD_MEAN : head };
  }

  /** The weights in large: of which head (or HEAD_MEAN), and null where they are not here. */
  weights() {
    const { layer, head } = this.shown;
    return { layer, head, row: this.rows.row(this.store.selected, layer, head) };
  }

  draw(changes) {
    if (changes.has('theme')) forgetPalette(this.root);
    if (changes.has('steps') || changes.has('session')) this.rows.sync();
    if (changes.has('steps') || changes.has('select')) this.hover = null;
    if (this.store.sel.step !== this.drawnStep) this.columns.follow = true;
    this.drawnStep = this.store.sel.step;
    this.frame.showEmpty(!this.store.selected);
    if (this.store.selected) this.#redraw();
    else this.tip.hide();
  }

  #redraw() {
    const step = this.store.selected;
    if (!step) return;
    this.thumbSurface.paint();
    this.headSurface.paint();
    this.#words(step);
    this.#say(step);
    this.frame.refreshTable();
    this.#settle();
  }

  /** Ask for what is missing once the selection has come to rest. */
  #settle() {
    clearTimeout(this.settling);
    const { selected: step, sel: { layer, head } } = this.store;
    const key = this.store.keyOf(step);
    const wantsMap = this.triangle && !this.mean && !this.rows.triangle(layer, head, this.store.promptLength);
    if (this.rows.state(step, layer) === 'here' && !wantsMap) return;
    this.settling = setTimeout(() => {
      if (this.store.keyOf(this.store.selected) !== key || this.store.sel.layer !== layer || this.store.sel.head !== head) return;
      this.rows.request(step, layer);
      if (wantsMap) this.rows.requestTriangle(layer, head);
      this.#words(step);
    }, ATTENTION_SETTLE_MS);
  }

  #words(step) {
    const { model, tokens } = this.store;
    const { layer, head } = this.shown;
    const position = step.kv_len - 1;
    this.frame.note(say('attention.query', { token: tokenAtPosition(tokens, position) }));
    const reads = Math.floor(head / (model.num_heads / model.num_kv_heads));
    const where = this.mean
      ? say('attention.where_mean', { layer, num_heads: model.num_heads })
      : say('attention.where', { layer, head, kv_head: reads, num_kv_heads: model.num_kv_heads });
    setText(this.where, where);
    this.where.title = say('attention.where_title');
    this.triangleButton.disabled = this.mean;
    setText(this.altered, this.hidesFirst ? say('attention.altered') : '');
    const state = this.rows.state(step, layer);
    const covers = {
      asked: say('attention.replaying', { step: step.index }), missing: say('attention.missing', { step: step.index }), failed: this.rows.message(step),
    };
    setText(this.cover, covers[state] ?? '');
    this.#shares(step, state, layer, head);
  }

  #shares(step, state, layer, head) {
    const row = this.rows.row(step, layer, head);
    const perBin = Math.ceil(step.kv_len / 64);
    const facts = [];
    if (row) {
      const sum = row.reduce((total, value) => total + value, 0);
      facts.push(1 - sum > SINK_SHOWN ? say('attention.sum_with_sink', { sum: sum.toFixed(3), sink: (1 - sum).toFixed(3) }) : say('attention.sum', { sum: sum.toFixed(3) }));
    } else if (state === 'pooled') facts.push(say('attention.pooled', { per_bin: perBin }));
    if (this.triangle && !this.mean && this.rows.asked(this.store.sel.layer, this.store.sel.head)) facts.push(say('attention.triangle_coming'));
    if (this.rowsInOne > 1) facts.push(say('attention.triangle_pooled', { rows_in_one: this.rowsInOne }));
    setText(this.shares, facts.join(' · '));
  }

  #paintThumbs() {
    const { store } = this;
    const step = store.selected;
    if (!step) return;
    const full = this.rows.full(step);
    const pooled = full ? null : this.rows.pooled(step);
    this.thumbPlane = full ?? pooled;
    this.thumbs.paint(this.thumbSurface, {
      palette: paletteOf(this.root), plane: this.thumbPlane, bytes: this.thumbPlane?.data instanceof Uint8Array,
      layers: store.model.num_layers, heads: store.model.num_heads, chosen: store.sel, hover: this.preview, mean: this.mean,
    });
  }

  #paintHead() {
    const step = this.store.selected;
    if (!step) return;
    const { layer, head } = this.shown;
    const alter = this.hidesFirst ? withoutFirst : (row) => row;
    const exact = this.rows.row(step, layer, head);
    const values = exact ?? this.rows.pooledRow(step, layer, head);
    const sum = exact ? exact.reduce((total, value) => total + value, 0) : 1;
    this.values = exact ? alter(exact) : null;
    const isMap = Boolean(this.map());
    const { first } = this.columns;
    this.columns.narrowest = isMap ? 1 : NARROWEST_KEY;
    this.head.paint(this.headSurface, {
      palette: paletteOf(this.root), columns: this.columns, keys: step.kv_len,
      rows: this.#lines(step, layer, head, alter), isMap, values: exact ? this.values : values, pooled: !exact,
      hidesFirst: this.hidesFirst && step.kv_len > 1, sink: 1 - sum > SINK_SHOWN ? 1 - sum : 0, hover: this.hover,
      label: (position) => plainToken(this.store.tokens[position]),
    });
    if (isMap && this.columns.first !== first) this.headSurface.ask(); // other keys are in view now, so other queries
  }

  /** The prompt's own rows of the head shown, where they were asked for and have come. */
  map() {
    const { layer, head } = this.shown;
    return this.triangle && !this.mean ? this.rows.triangle(layer, head, this.store.promptLength) : null;
  }

  /** One line per step up to the selected one; before them the prompt's own rows that read a key in view, pooled until they fit. */
  #lines(step, layer, head, alter) {
    const { steps, promptLength } = this.store;
    const lines = [];
    const map = this.map();
    const most = mostHeadRows(this.headSurface.h, paletteOf(this.root).label, Boolean(map));
    for (let q = this.columns.first; map && q < promptLength - 1; q++) lines.push({ position: q, values: alter(map.row(q)), current: false, step: 0 });
    for (let index = map ? 0 : Math.max(0, step.index - most); index <= step.index; index++) {
      const row = this.rows.row(steps[index], layer, head);
      lines.push({ position: steps[index].kv_len - 1, values: row ? alter(row) : null, current: index === step.index, step: index });
    }
    const pooled = map ? pooledLines(lines, most) : { lines, each: 1 };
    this.rowsInOne = pooled.each;
    return pooled.lines;
  }

  #listenThumbs(canvas) {
    const preview = (at) => {
      if (at?.layer === this.preview?.layer && at?.head === this.preview?.head) return;
      this.preview = at;
      this.thumbSurface.ask();
      this.headSurface.ask();
      if (this.store.selected) this.#words(this.store.selected);
    };
    canvas.addEventListener('pointermove', (event) => preview(this.thumbs.headAt(event.offsetX, event.offsetY)));
    canvas.addEventListener('pointerleave', () => preview(null));
    canvas.addEventListener('click', (event) => {
      const at = this.thumbs.headAt(event.offsetX, event.offsetY);
      if (at) this.store.select(at);
    });
  }

  #choose(layers, heads) {
    const { layer, head } = this.store.sel;
    this.store.select({ layer: layer + layers, head: head + heads });
  }

  /** The chosen head in words: what it reads most. */
  #say(step) {
    const { model, tokens, sel } = this.store;
    const row = this.rows.row(step, sel.layer, sel.head);
    const key = row ? row.indexOf(Math.max(...row)) : -1;
    const where = { layer: sel.layer, head: sel.head };
    const words = key < 0 ? say('attention.head', where) : say('attention.head_reads', { ...where, token: tokenAtPosition(tokens, key), weight: formatProb(row[key]) });
    this.grid.say({ row: sel.layer, column: sel.head, rows: model.num_layers, columns: model.num_heads, words });
    this.headSurface.canvas.setAttribute('aria-label', say('attention.one_head', { layer: sel.layer, head: sel.head }));
  }

  #listenHead(canvas) {
    canvas.addEventListener('pointermove', (event) => {
      this.hover = this.head.at(event.offsetX, event.offsetY);
      const { tokens, selected: step } = this.store;
      tellWeight(this.tip, event, this.hover, { tokens, step, values: this.values, hidesFirst: this.hidesFirst });
      this.headSurface.ask();
    });
    canvas.addEventListener('pointerleave', () => {
      this.hover = null;
      this.tip.hide();
      this.headSurface.ask();
    });
    canvas.addEventListener('click', () => {
      if (this.hover?.row && !this.pan.moved()) this.store.select({ step: this.hover.row.step });
    });
  }

  #table() {
    const { tokens, selected: step } = this.store;
    const { layer, head } = this.shown;
    const row = step ? this.rows.row(step, layer, head) : null;
    return attentionTable(tokens, step, row, { layer, which: this.mean ? say('attention.mean') : `head ${head}`, hidesFirst: this.hidesFirst });
  }

  destroy() {
    clearTimeout(this.settling);
    this.pan.destroy();
    this.thumbSurface.destroy();
    this.headSurface.destroy();
  }
}

/** @param {HTMLElement} root an empty element */
export function attentionPanel(root, store) {
  const panel = new AttentionPanel(root, store);
  return {
    draw: (changes) => panel.draw(changes),
    destroy: () => panel.destroy(),
    grid: () => gridOn(panel.thumbSurface, panel.thumbs.box),
    weights: () => panel.weights(),
    rows: panel.rows,
    get shown() {
      return panel.shown; // {layer, head}: what is on screen, HEAD_MEAN for the mean of heads
    },
  };
}
