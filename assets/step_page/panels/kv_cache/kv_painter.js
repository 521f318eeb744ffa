/** Drawing of the KV grid, and where each cell is. Knows nothing of the store. */

import { say } from '../../drawing/say.js';
import { colourRamp, mixColour, pixelOf, rampAt } from '../../drawing/palette.js';
import { fitLabel, Raster, slantLabel } from '../../drawing/canvas.js';

const KV_LABEL_WIDTH = 0.84; // of the label's size: narrower columns carry position numbers instead of tokens

export class KvPainter {
  shown = 'both'; // or 'keys', 'values'
  scale = 'layer'; // or 'all'
  #raster = new Raster();
  #ramps = null;
  #at = null; // geometry of the last drawing
  #slide = null; // the pictures of the columns that stay and of those that arrive

  /** Draw one frame. `view`: palette, norms, columns, hover, layer, layers, added, kvLen, sliding, label. */
  paint(surface, view) {
    const { g, w, h, dpr } = surface;
    const size = view.palette.label;
    const left = Math.ceil(size * 2.1);
    const top = Math.ceil(size * 4.1);
    const rowPixels = Math.max(1, ((h - top - 3) * dpr) / view.layers); // not whole: edges are rounded one by one
    view.columns.widest = Math.max(size * 2.6, w / 16);
    // The column after the last is the token not cached yet; it has to fit as well.
    view.columns.fit(view.norms.count, w - left - size * 1.6, dpr, view.kvLen - 1);
    this.#at = { left, top, row: rowPixels / dpr, columns: view.columns, layers: view.layers, size };
    g.font = `${size}px ${view.palette.font}`;
    this.#cells(surface, view, rowPixels);
    this.#rowLabels(g, view);
    this.#frames(g, view);
    this.#columnLabels(g, view, w);
  }

  /** @returns {{position: number, layer: number} | null} the cell at a point; the dashed column counts */
  cellAt(x, y) {
    if (!this.#at) return null;
    const { left, top, row, columns, layers } = this.#at;
    const position = columns.first + Math.floor((x - left) / columns.width);
    const layer = Math.floor((y - top) / row);
    if (x < left || position > columns.end || layer < 0 || layer >= layers) return null;
    return { position, layer };
  }

  /** @returns {{left: number, top: number, width: number, height: number} | null} where the cells are */
  get box() {
    if (!this.#at) return null;
    const { left, top, row, columns, layers } = this.#at;
    return { left, top, width: (columns.end - columns.first + 1) * columns.width, height: row * layers };
  }

  /** @returns {{x: number, y: number}} the middle of a cell */
  placeOf({ position, layer }) {
    const { top, row, columns } = this.#at;
    return { x: this.#x(position) + columns.width / 2, y: top + (layer + 0.5) * row };
  }

  #x(position) {
    return this.#at.left + (position - this.#at.columns.first) * this.#at.columns.width;
  }

  #rampsFor(palette) {
    if (this.#ramps?.palette === palette) return this.#ramps;
    const faded = (colour) => colourRamp(palette.grid, mixColour(palette.card, colour, 0.28));
    this.#ramps = {
      palette,
      keys: colourRamp(palette.grid, palette.k), values: colourRamp(palette.grid, palette.v),
      keysLater: faded(palette.k), valuesLater: faded(palette.v),
    };
    return this.#ramps;
  }

  #cells(surface, view, rowPixels) {
    const { columns, sliding } = view;
    const width = Math.round(columns.width * surface.dpr);
    const cell = { width, row: rowPixels, gap: rowPixels >= 5 * surface.dpr ? Math.round(surface.dpr) : 0 };
    if (sliding) return this.#arriving(surface, view, cell);
    this.#picture(surface.g, view, cell, columns.first, columns.end);
    return this.#raster.commit(surface.g, ...this.#corner(surface.dpr));
  }

  #corner(dpr) {
    return [Math.round(this.#at.left * dpr), Math.round(this.#at.top * dpr)];
  }

  /** The columns from `from` up to `to`, into the raster. */
  #picture(g, view, cell, from, to) {
    const ramps = this.#rampsFor(view.palette);
    this.#raster.begin(g, cell.width * (to - from), Math.round(cell.row * view.layers));
    for (let position = from; position < to; position++) this.#column(view, ramps, position, (position - from) * cell.width, cell);
  }

  /** One column into the raster: the key half, then the value half. */
  #column(view, ramps, position, x, cell) {
    const scale = view.norms.scale();
    const later = position >= view.kvLen ? 'Later' : '';
    const gap = cell.width >= 9 ? 2 : cell.width >= 3 ? 1 : 0;
    const sides = this.shown === 'both' ? ['keys', 'values'] : [this.shown];
    const half = Math.max(1, Math.floor((cell.width - gap) / sides.length));
    sides.forEach((side, i) => {
      const ramp = ramps[side + later];
      const norms = view.norms[side];
      for (let layer = 0; layer < view.layers; layer++) {
        const [low, high] = this.scale === 'layer' ? [scale[side].low[layer], scale[side].high[layer]] : scale[side].all;
        const span = high - low;
        const share = span > 0 ? (norms[position * view.layers + layer] - low) / span : 0.5;
        const shade = 0.14 + 0.86 * Math.max(0, Math.min(1, share));
        const y = Math.round(layer * cell.row);
        this.#raster.rect(x + i * half, y, half, Math.round((layer + 1) * cell.row) - y - cell.gap, rampAt(ramp, shade));
      }
    });
  }

  /** Columns that slide in from the right, moved and faded; the two pictures are painted once for all frames of a slide. */
  #arriving({ g, w, h, dpr }, view, cell) {
    const { columns, sliding } = view;
    const from = Math.max(columns.first, columns.end - Math.min(columns.end - sliding.from, columns.visible));
    const key = [sliding.start, this.shown, this.scale, columns.first, cell.width, w, h, dpr].join('/');
    if (this.#slide?.key !== key || this.#slide.palette !== view.palette) {
      const pictures = [[columns.first, from], [from, columns.end]].map(([first, end]) => {
        this.#picture(g, view, cell, first, end);
        return this.#raster.copy();
      });
      this.#slide = { key, palette: view.palette, pictures };
    }
    const [still, moving] = this.#slide.pictures;
    const ease = 1 - (1 - sliding.progress) ** 3;
    const [x, y] = this.#corner(dpr).map((pixels) => pixels / dpr);
    if (from > columns.first) g.drawImage(still, x, y, still.width / dpr, still.height / dpr);
    g.save();
    g.globalAlpha = ease;
    const way = Math.max(36, columns.width);
    g.drawImage(moving, this.#x(from) + (1 - ease) * way, y, moving.width / dpr, moving.height / dpr);
    g.restore();
  }

  #rowLabels(g, { palette, layers, layer, hover }) {
    const { left, top, row, size } = this.#at;
    g.textAlign = 'right';
    g.textBaseline = 'middle';
    const every = Math.max(1, Math.ceil((size * 1.5) / row));
    const chosen = hover?.layer ?? layer;
    const clear = Math.ceil((size * 1.1) / row);
    for (let l = 0; l < layers; l += every) {
      if (Math.abs(l - chosen) < clear) continue;
      g.fillStyle = palette.mute.css;
      g.fillText(String(l), left - 6, top + (l + 0.5) * row);
    }
    g.fillStyle = hover ? palette.text.css : palette.accent.css;
    g.fillText(String(chosen), left - 6, top + (chosen + 0.5) * row);
    g.fillRect(left - 4, top + chosen * row, 2, Math.max(2, row - 1));
  }

  #frames(g, { palette, columns, added, hover, kvLen, layers }) {
    const { top, row, left } = this.#at;
    const height = row * layers;
    const from = Math.max(added[0], columns.first);
    const to = Math.min(added[1], columns.end);
    if (to > from) {
      g.strokeStyle = palette.accent.css;
      g.lineWidth = 2;
      g.strokeRect(this.#x(from) - 1.5, top - 1.5, (to - from) * columns.width + 1, height + 2);
    }
    if (kvLen >= columns.first && kvLen <= columns.end) this.#next(g, palette, kvLen, height);
    if (!hover) return;
    g.fillStyle = palette.text.css;
    g.globalAlpha = 0.85;
    g.fillRect(left, top + hover.layer * row - 1, (columns.end - columns.first) * columns.width, 1);
    g.fillRect(left, top + (hover.layer + 1) * row - 1, (columns.end - columns.first) * columns.width, 1);
    g.globalAlpha = 1;
    g.strokeStyle = palette.text.css;
    g.lineWidth = 1;
    g.strokeRect(this.#x(hover.position) - 0.5, top - 0.5, columns.width, height);
  }

  /** The token just drawn has no column yet. */
  #next(g, palette, position, height) {
    const { top, columns, size } = this.#at;
    const width = Math.max(columns.width, size * 1.4);
    g.save();
    g.setLineDash([4, 3]);
    g.strokeStyle = palette.faint.css;
    g.lineWidth = 1;
    g.strokeRect(this.#x(position) + 1.5, top + 0.5, width - 3, height - 1);
    g.restore();
    g.fillStyle = palette.mute.css;
    g.textBaseline = 'middle';
    if (columns.count === position) slantLabel(g, fitLabel(g, say('kv_painter.not_cached'), height), this.#x(position) + width / 2 - 1, top + height / 2, -Math.PI / 2, 'center');
  }

  #columnLabels(g, view, w) {
    const { columns, palette, hover } = view;
    const { top, size } = this.#at;
    const named = columns.width >= size * KV_LABEL_WIDTH;
    g.textBaseline = 'alphabetic';
    const every = named ? 1 : Math.ceil((size * 3) / columns.width);
    const end = Math.min(columns.end, columns.count - 1) + 1;
    for (let position = columns.first; position <= end; position++) {
      if (position > view.kvLen && position >= columns.count) continue;
      const strong = position === hover?.position || (position >= view.added[0] && position < view.added[1] && named);
      if (!named && !strong && position % every) continue;
      if (!named && !strong && hover && Math.abs(position - hover.position) < every) continue; // room for the token's name
      const x = this.#x(position) + columns.width / 2;
      if (x > w) continue;
      g.fillStyle = strong ? palette.text.css : palette.mute.css;
      if (named || strong) slantLabel(g, fitLabel(g, view.label(position), size * 5), x + 2, top - 6, -0.7, 'left');
      else slantLabel(g, String(position), x, top - 6, 0, 'center');
    }
  }
}
