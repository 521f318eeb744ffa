/**
 * A canvas that fills its host and stays sharp, and a raster for grids of many cells.
 *
 * The canvas is positioned out of the flow, so its size never drives the layout: the host's size does.
 */

import { afterWrites } from './draw_pass.js';
import { forgetPalette } from './palette.js';

const paintedBy = new WeakMap(); // canvas -> (makePen) => what a pen of another kind drew of it

/** Let `draw(pen)` draw again what is on `canvas`, in CSS pixels, when a picture of it is taken. */
export function drawnBy(canvas, draw) {
  paintedBy.set(canvas, draw);
}

/** Draw what is on `canvas` with `pen`. @returns {boolean} false where nobody knows how it was drawn */
export function drawWith(canvas, pen) {
  const draw = paintedBy.get(canvas);
  draw?.(pen);
  return Boolean(draw);
}

/**
 * @param {HTMLElement} host an element whose size is set by CSS
 * @param {(surface: object) => void} paint draws everything; called with the transform set to CSS pixels
 * @returns surface {canvas, g, w, h, dpr, paint(), ask(), destroy()}; `paint` draws now, or at the end of
 *   the page's drawing that is going on; `ask` in the next frame
 */
export function makeSurface(host, paint) {
  const canvas = document.createElement('canvas');
  host.classList.add('lp-surface');
  host.append(canvas);
  const surface = { host, canvas, g: canvas.getContext('2d'), w: 0, h: 0, dpr: 1 };
  let frame = 0;
  const fit = () => {
    const dpr = window.devicePixelRatio || 1;
    const w = Math.floor(host.clientWidth);
    const h = Math.floor(host.clientHeight);
    if (w === surface.w && h === surface.h && dpr === surface.dpr) return;
    Object.assign(surface, { w, h, dpr });
    canvas.width = Math.round(w * dpr);
    canvas.height = Math.round(h * dpr);
    canvas.style.width = `${w}px`;
    canvas.style.height = `${h}px`;
  };
  const paintNow = () => {
    cancelAnimationFrame(frame);
    frame = 0;
    if (surface.dpr !== (window.devicePixelRatio || 1)) fit();
    if (!surface.w || !surface.h) return;
    surface.g.setTransform(surface.dpr, 0, 0, surface.dpr, 0, 0);
    surface.g.clearRect(0, 0, surface.w, surface.h);
    paint(surface);
  };
  surface.paint = () => afterWrites(surface, paintNow);
  surface.ask = () => {
    if (!frame) frame = requestAnimationFrame(paintNow);
  };
  const observer = new ResizeObserver(() => {
    fit();
    const panel = host.closest('.lp-panel');
    if (panel) forgetPalette(panel); // the type size may follow the width
    surface.paint();
  });
  observer.observe(host);
  fit();
  drawnBy(canvas, (pen) => {
    fit();
    const { g } = surface;
    surface.g = pen;
    try {
      if (surface.w && surface.h) paint(surface);
    } finally {
      surface.g = g;
    }
    paintNow(); // a size that was not known before has emptied the canvas
  });
  surface.destroy = () => {
    cancelAnimationFrame(frame);
    observer.disconnect();
  };
  return surface;
}

/**
 * Where a grid lies on its canvas, and the element over which something may be laid; null while it is not seen.
 * @param {{left: number, top: number, width: number, height: number} | null} box
 */
export function gridOn({ host }, box) {
  return box && host.clientWidth ? { host, ...box } : null;
}

/** A grid drawn pixel by pixel in device pixels: thousands of cells in well under a millisecond. */
export class Raster {
  constructor() {
    this.image = null;
    this.pixels = null;
    this.width = 0;
    this.height = 0;
    this.cells = null; // the rectangles themselves, where the pen asks for them
  }

  /** Start an empty (transparent) picture. */
  begin(g, width, height) {
    if (!this.image || width !== this.width || height !== this.height) {
      this.image = g.createImageData(Math.max(1, width), Math.max(1, height));
      this.pixels = new Uint32Array(this.image.data.buffer);
      this.width = Math.max(1, width);
      this.height = Math.max(1, height);
    } else {
      this.pixels.fill(0);
    }
    this.cells = g.isPicture ? [] : null;
  }

  /** Fill a rectangle of whole device pixels; what lies outside is cut off. */
  rect(x, y, w, h, pixel) {
    const left = Math.max(0, x);
    const right = Math.min(this.width, x + w);
    const bottom = Math.min(this.height, y + h);
    if (this.cells) this.#cell(left, Math.max(0, y), right, bottom, pixel);
    for (let row = Math.max(0, y); row < bottom; row++) {
      this.pixels.fill(pixel, row * this.width + left, Math.max(row * this.width + left, row * this.width + right));
    }
  }

  /** Columns of one pixel that go on to the right in the same colour are one cell. */
  #cell(left, top, right, bottom, pixel) {
    const { cells } = this;
    if (right <= left || bottom <= top) return;
    const [x, y, width, height, before] = cells.slice(-5);
    if (right - left === 1 && x + width === left && y === top && height === bottom - top && before === pixel) cells[cells.length - 3] = right - x;
    else cells.push(left, top, right - left, bottom - top, pixel);
  }

  /** The picture on a canvas of its own, to be drawn again and again. */
  copy() {
    const canvas = document.createElement('canvas');
    canvas.width = this.width;
    canvas.height = this.height;
    canvas.getContext('2d').putImageData(this.image, 0, 0);
    return canvas;
  }

  /** Put the picture on the canvas at device pixel (x, y). Overwrites what is there. */
  commit(g, x, y) {
    if (this.cells) g.putCells(this.cells, x, y, () => this.copy());
    else g.putImageData(this.image, x, y);
  }
}

/** `text` cut with an ellipsis so that it is at most `width` wide in the context's font. */
export function fitLabel(g, text, width) {
  if (g.measureText(text).width <= width) return text;
  let low = 0;
  let high = text.length;
  while (low < high) {
    const middle = (low + high + 1) >> 1;
    if (g.measureText(`${text.slice(0, middle)}…`).width <= width) low = middle;
    else high = middle - 1;
  }
  return low ? `${text.slice(0, low)}…` : '';
}

/** Slanted text that ends (align right) or starts (align left) at a point. */
export function slantLabel(g, text, x, y, angle, align) {
  g.save();
  g.translate(x, y);
  g.rotate(angle);
  g.textAlign = align;
  g.fillText(text, 0, 0);
  g.restore();
}

/** True where the person asked the system for less motion. */
export function reducedMotion() {
  return window.matchMedia('(prefers-reduced-motion: reduce)').matches;
}
