/**
 * Attention as lines: from the token that asks to the tokens it read, each as thick and as solid as its weight.
 *
 * One hue: what a line says, it says by thickness and opacity. The drawing lies over the page, catches no pointer and
 * is hidden from screen readers: whoever draws says the same in words. It knows rectangles and weights, nothing else.
 *
 * For tests: svg.attention-lines path[data-weight]
 */

const LINES_NS = 'http://www.w3.org/2000/svg';
const MOST_LINES = 48; // the thinnest are left out: nobody can tell them apart
const LEAST_WEIGHT = 0.004;
const THINNEST = 0.8; // pixels
const THICKEST = 8;

/** An empty drawing over `host`, which must be positioned. @returns {SVGSVGElement} */
export function linesLayer(host) {
  const layer = document.createElementNS(LINES_NS, 'svg');
  layer.setAttribute('class', 'attention-lines');
  layer.setAttribute('aria-hidden', 'true');
  host.append(layer);
  return layer;
}

/** Draw nothing. */
export function clearLines(layer) {
  layer.replaceChildren();
}

/**
 * Which weights become lines, thinnest first, so that the strongest lies on top.
 * @param {ArrayLike<number>} weights @returns {number[]} indices
 */
export function strongestWeights(weights, most = MOST_LINES) {
  return Array.from(weights, (weight, index) => [weight, index])
    .filter(([weight]) => weight >= LEAST_WEIGHT)
    .sort((a, b) => a[0] - b[0])
    .slice(-most)
    .map(([, index]) => index);
}

export const lineWidth = (weight) => THINNEST + (THICKEST - THINNEST) * Math.min(1, weight);
export const lineOpacity = (weight) => 0.28 + 0.72 * Math.sqrt(Math.min(1, weight));

/**
 * A curve between two boxes. In one row it hangs below both; between rows it runs from edge to edge; onto itself it is
 * a small loop. Boxes are {left, top, width, height}.
 * @param {number} deepest how far below the row it may hang, in pixels
 */
export function curveBetween(from, to, deepest = 90) {
  const a = { x: from.left + from.width / 2, top: from.top, bottom: from.top + from.height };
  const b = { x: to.left + to.width / 2, top: to.top, bottom: to.top + to.height };
  const at = (...numbers) => numbers.map((n) => n.toFixed(1)).join(' ');
  if (Math.abs(a.top - b.top) > from.height / 2) {
    const [start, end] = a.top > b.top ? [a.top, b.bottom] : [a.bottom, b.top];
    const bend = (end - start) / 2;
    return `M${at(a.x, start)} C${at(a.x, start + bend)} ${at(b.x, end - bend)} ${at(b.x, end)}`;
  }
  const apart = Math.abs(a.x - b.x);
  const y = Math.max(a.bottom, b.bottom) + 1;
  if (apart < 1) {
    const r = Math.min(9, from.width / 3);
    return `M${at(a.x - r, y)} C${at(a.x - r, y + 2.6 * r)} ${at(a.x + r, y + 2.6 * r)} ${at(a.x + r, y)}`;
  }
  const depth = (deepest * apart) / (apart + 240) / 0.75; // so that curves nest; a cubic reaches 0.75 of its handles
  const lean = (b.x - a.x) / 10;
  return `M${at(a.x, y)} C${at(a.x + lean, y + depth)} ${at(b.x - lean, y + depth)} ${at(b.x, y)}`;
}

/**
 * Draw what was there away, and these lines in its place.
 * @param {SVGSVGElement} layer of `linesLayer`
 * @param {DOMRectReadOnly|{left, top, width, height}} from the token that asks, in the window's coordinates
 * @param {Array<DOMRectReadOnly|{left, top, width, height}|null>} to the tokens it may have read; null: on no screen
 * @param {ArrayLike<number>} weights one for each of `to`
 * @param {{deepest?: number}} [options] how far below their row the lines may hang
 * @returns {{paths: SVGPathElement[], shown: number}} the lines, thinnest first, and the sum of their weights
 */
export function attentionLines(layer, from, to, weights, { deepest } = {}) {
  const origin = layer.getBoundingClientRect();
  const here = ({ left, top, width, height }) => ({ left: left - origin.left, top: top - origin.top, width, height });
  const seen = strongestWeights(Array.from(weights, (weight, index) => (to[index] ? weight : 0)));
  const paths = seen.map((index) => {
    const path = document.createElementNS(LINES_NS, 'path');
    path.setAttribute('d', curveBetween(here(from), here(to[index]), deepest));
    path.setAttribute('stroke-width', lineWidth(weights[index]).toFixed(2));
    path.setAttribute('stroke-opacity', lineOpacity(weights[index]).toFixed(3));
    path.dataset.weight = weights[index].toFixed(4);
    return path;
  });
  layer.replaceChildren(...paths);
  return { paths, shown: seen.reduce((sum, index) => sum + weights[index], 0) };
}
