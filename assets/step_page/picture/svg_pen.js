/**
 * A canvas context that writes SVG: the calls our drawing makes, and no others. One that it does not know throws.
 *
 * Text is measured by a real context, so that labels are cut and placed as on the canvas. Cells of a raster become
 * rectangles, one a cell; where they would be more than a program takes gladly, the raster goes in as a picture.
 */

import { inkAttributes, svgElement, svgNumber, svgText } from './svg_markup.js';

const MOST_CELLS = 30_000;
const PEN_START = {
  fillStyle: '#000', strokeStyle: '#000', lineWidth: 1, globalAlpha: 1, font: '10px sans-serif', textAlign: 'start', textBaseline: 'alphabetic',
};
const ANCHORS = { center: 'middle', right: 'end', end: 'end' };
const FONT = /^(?:(\w+) )?([\d.]+)px (.+)$/s; // as our painters write it: "600 12px family"

let clipCount = 0;

export class SvgPen {
  isPicture = true;
  #out = [];
  #ruler = document.createElement('canvas').getContext('2d');
  #saved = [];
  #moves = []; // transforms in force, as SVG writes them
  #clip = null;
  #dash = [];
  #path = '';

  /** @param {number} dpr of the canvas that is drawn: rasters speak of its pixels */
  constructor(dpr = 1) {
    this.dpr = dpr;
    Object.assign(this, PEN_START);
  }

  /** What was drawn, as markup. */
  get markup() {
    return this.#out.join('');
  }

  save() {
    const state = Object.fromEntries(Object.keys(PEN_START).map((name) => [name, this[name]]));
    this.#saved.push({ state, moves: [...this.#moves], clip: this.#clip, dash: this.#dash });
  }

  restore() {
    const { state, moves, clip, dash } = this.#saved.pop();
    Object.assign(this, state);
    this.#moves = moves;
    this.#clip = clip;
    this.#dash = dash;
  }

  translate(x, y) {
    this.#moves.push(`translate(${svgNumber(x)} ${svgNumber(y)})`);
  }

  rotate(angle) {
    this.#moves.push(`rotate(${svgNumber((angle * 180) / Math.PI)})`);
  }

  setLineDash(dash) {
    this.#dash = dash;
  }

  clearRect() {} // a picture begins empty

  #write(tag, attributes, inside) {
    const element = svgElement(tag, { transform: this.#moves.join(' '), ...attributes }, inside);
    this.#out.push(this.#clip ? svgElement('g', { 'clip-path': `url(#${this.#clip})` }, element) : element);
  }

  get #stroke() {
    return {
      ...inkAttributes('stroke', this.strokeStyle, this.globalAlpha), 'stroke-width': this.lineWidth,
      'stroke-dasharray': this.#dash.join(' '), fill: 'none',
    };
  }

  fillRect(x, y, width, height) {
    if (height < 0) return this.fillRect(x, y + height, width, -height);
    if (width > 0 && height > 0) this.#write('rect', { x, y, width, height, ...inkAttributes('fill', this.fillStyle, this.globalAlpha) });
  }

  strokeRect(x, y, width, height) {
    if (width > 0 && height > 0) this.#write('rect', { x, y, width, height, ...this.#stroke });
  }

  beginPath() {
    this.#path = '';
  }

  moveTo(x, y) {
    this.#path += `M${svgNumber(x)} ${svgNumber(y)}`;
  }

  lineTo(x, y) {
    this.#path += `${this.#path ? 'L' : 'M'}${svgNumber(x)} ${svgNumber(y)}`;
  }

  closePath() {
    this.#path += 'Z';
  }

  rect(x, y, width, height) {
    this.#path += `M${svgNumber(x)} ${svgNumber(y)}h${svgNumber(width)}v${svgNumber(height)}h${svgNumber(-width)}Z`;
  }

  /** A whole circle, which is all that is drawn here. */
  arc(x, y, radius, from, to) {
    if (Math.abs(to - from) < 2 * Math.PI - 1e-6) throw new Error('SvgPen.arc draws whole circles only');
    const r = svgNumber(radius);
    this.#path += `M${svgNumber(x - radius)} ${svgNumber(y)}a${r} ${r} 0 1 0 ${svgNumber(2 * radius)} 0a${r} ${r} 0 1 0 ${svgNumber(-2 * radius)} 0Z`;
  }

  fill() {
    if (this.#path) this.#write('path', { d: this.#path, ...inkAttributes('fill', this.fillStyle, this.globalAlpha) });
  }

  stroke() {
    if (this.#path) this.#write('path', { d: this.#path, ...this.#stroke });
  }

  clip() {
    const id = `loupe-clip-${++clipCount}`;
    this.#out.push(svgElement('clipPath', { id }, svgElement('path', { d: this.#path })));
    this.#clip = id;
  }

  measureText(text) {
    this.#ruler.font = this.font;
    return this.#ruler.measureText(text);
  }

  fillText(text, x, y) {
    if (!String(text).trim()) return;
    const [, weight, size, family] = FONT.exec(this.font);
    const font = { family, size: Number(size), weight, anchor: ANCHORS[this.textAlign], rotate: this.#moves.join(' '), wide: this.measureText(text).width };
    const drawn = svgText(text, x, y + this.#drop(), font, inkAttributes('fill', this.fillStyle, this.globalAlpha));
    this.#out.push(this.#clip ? svgElement('g', { 'clip-path': `url(#${this.#clip})` }, drawn) : drawn);
  }

  /** From the line that text is placed by down to its baseline: few programs but browsers know any other. */
  #drop() {
    this.#ruler.font = this.font;
    this.#ruler.textBaseline = 'alphabetic';
    const whole = this.#ruler.measureText('x').fontBoundingBoxAscent;
    this.#ruler.textBaseline = this.textBaseline;
    return whole - this.#ruler.measureText('x').fontBoundingBoxAscent;
  }

  createImageData(width, height) {
    return new ImageData(width, height);
  }

  /**
   * The cells of a raster, in its canvas' own pixels from (x, y) on.
   * @param {number[]} cells left, top, width, height, pixel; and again @param {() => HTMLCanvasElement} copy of the raster
   */
  putCells(cells, x, y, copy) {
    if (cells.length / 5 > MOST_CELLS) {
      const image = copy();
      return this.drawImage(image, x / this.dpr, y / this.dpr, image.width / this.dpr, image.height / this.dpr);
    }
    const byInk = new Map();
    for (let i = 0; i < cells.length; i += 5) {
      const [left, top, width, height] = [x + cells[i], y + cells[i + 1], cells[i + 2], cells[i + 3]].map((pixels) => pixels / this.dpr);
      if (!byInk.has(cells[i + 4])) byInk.set(cells[i + 4], []);
      byInk.get(cells[i + 4]).push(svgElement('rect', { x: left, y: top, width, height }));
    }
    const groups = [...byInk].map(([pixel, rects]) => svgElement('g', inkAttributes('fill', pixelCss(pixel)), rects.join('')));
    return this.#write('g', { class: 'cells', 'shape-rendering': 'crispEdges' }, groups.join(''));
  }

  drawImage(image, x, y, width, height) {
    this.#write('image', {
      x, y, width, height, href: image.toDataURL('image/png'), opacity: this.globalAlpha < 1 ? this.globalAlpha : '', style: 'image-rendering: pixelated',
      preserveAspectRatio: 'none',
    });
  }
}

/** A little-endian RGBA pixel as CSS. */
function pixelCss(pixel) {
  return `rgba(${pixel & 255},${(pixel >>> 8) & 255},${(pixel >>> 16) & 255},${(pixel >>> 24) / 255})`;
}
