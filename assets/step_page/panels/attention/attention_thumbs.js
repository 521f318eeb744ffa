/** Every head of every layer as a tiny row over the keys, square-root scale. */

import { colourRamp, rampAt } from '../../drawing/palette.js';
import { Raster } from '../../drawing/canvas.js';

export class ThumbPainter {
  #raster = new Raster();
  #ramp = null;
  #at = null;

  /** @param view {palette, plane: (L, H, N) or null, bytes: plane holds value * 255, layers, heads, chosen, hover, mean} */
  paint(surface, view) {
    const { g, w, h, dpr } = surface;
    const { palette, layers, heads } = view;
    const size = palette.label;
    const left = Math.ceil(size * 2.1);
    const top = Math.ceil(size * 2.6);
    const cellWidth = Math.max(2, ((w - left - 3) * dpr) / heads); // not whole: edges are rounded one by one
    const cellHeight = Math.max(1, ((h - top - 3) * dpr) / layers);
    this.#at = { left, top, width: cellWidth / dpr, height: cellHeight / dpr, layers, heads, size };
    g.font = `${size}px ${palette.font}`;
    this.#cells(surface, view, cellWidth, cellHeight);
    this.#axes(g, view);
    this.#marks(g, view);
  }

  /** @returns {{left: number, top: number, width: number, height: number} | null} where the cells are */
  get box() {
    if (!this.#at) return null;
    const { left, top, width, height, layers, heads } = this.#at;
    return { left, top, width: width * heads, height: height * layers };
  }

  /** @returns {{layer: number, head: number} | null} */
  headAt(x, y) {
    if (!this.#at) return null;
    const { left, top, width, height, layers, heads } = this.#at;
    const head = Math.floor((x - left) / width);
    const layer = Math.floor((y - top) / height);
    return head < 0 || head >= heads || layer < 0 || layer >= layers ? null : { layer, head };
  }

  #cells({ g, dpr }, view, width, height) {
    const { plane, layers, heads, palette } = view;
    if (this.#ramp?.palette !== palette) this.#ramp = { palette, pixels: colourRamp(palette.grid, palette.accent) };
    const ramp = this.#ramp.pixels;
    const keys = plane?.shape[2] ?? 1;
    const data = plane?.data ?? new Float32Array(layers * heads); // nothing here yet: empty cells, same places
    const gapX = width >= 12 ? Math.round(2 * dpr) : 1;
    const gapY = height >= 4 ? Math.round(dpr) : 0;
    const unit = view.bytes ? 1 / 255 : 1;
    this.#raster.begin(g, Math.round(width * heads), Math.round(height * layers));
    for (let layer = 0; layer < layers; layer++) {
      for (let head = 0; head < heads; head++) {
        const start = (layer * heads + head) * keys;
        const left = Math.round(head * width);
        const columns = Math.round((head + 1) * width) - left - gapX;
        const y = Math.round(layer * height);
        const tall = Math.round((layer + 1) * height) - y - gapY;
        for (let x = 0; x < columns; x++) {
          const from = Math.floor((x * keys) / columns);
          const to = Math.max(from + 1, Math.floor(((x + 1) * keys) / columns));
          let top = 0;
          for (let key = from; key < to; key++) if (data[start + key] > top) top = data[start + key];
          this.#raster.rect(left + x, y, 1, tall, rampAt(ramp, Math.sqrt(top * unit)));
        }
      }
    }
    this.#raster.commit(g, Math.round(this.#at.left * dpr), Math.round(this.#at.top * dpr));
  }

  #axes(g, { palette, layers, heads, chosen, hover, mean }) {
    const { left, top, width, height, size } = this.#at;
    const marked = hover ?? chosen;
    g.textBaseline = 'middle';
    g.fillStyle = palette.mute.css;
    g.textAlign = 'left';
    g.fillText('head →', left, size * 0.7);
    g.textAlign = 'center';
    const everyHead = Math.max(1, Math.ceil((size * 1.6) / width));
    for (let head = 0; head < heads; head++) {
      const strong = head === marked.head || mean;
      if (!strong && head % everyHead) continue;
      g.fillStyle = strong ? palette.text.css : palette.mute.css;
      g.fillText(String(head), left + (head + 0.5) * width, top - size * 0.75);
    }
    g.textAlign = 'right';
    const everyLayer = Math.max(1, Math.ceil((size * 1.5) / height));
    const clear = Math.ceil((size * 1.1) / height);
    for (let layer = 0; layer < layers; layer += everyLayer) {
      if (Math.abs(layer - marked.layer) < clear) continue;
      g.fillStyle = palette.mute.css;
      g.fillText(String(layer), left - 6, top + (layer + 0.5) * height);
    }
    g.fillStyle = palette.text.css;
    g.fillText(String(marked.layer), left - 6, top + (marked.layer + 0.5) * height);
  }

  #marks(g, { palette, chosen, hover, mean, heads }) {
    const { left, top, width, height } = this.#at;
    const frame = (at, colour, line) => {
      const first = mean ? 0 : at.head;
      const wide = mean ? width * heads : width;
      g.strokeStyle = colour;
      g.lineWidth = line;
      g.strokeRect(left + first * width - 1.5, top + at.layer * height - 1.5, wide + 1, height + 2);
    };
    if (hover) frame(hover, palette.mute.css, 1.5);
    frame(chosen, palette.text.css, 2);
  }
}
