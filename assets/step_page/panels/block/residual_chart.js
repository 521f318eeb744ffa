/** The residual stream over the layers: a bar a layer, on a log scale; what each branch added stands inside it as a mark. */

import { paletteOf } from '../../drawing/palette.js';

const CHART_EDGE = 4;

/** Which layer is at x of a chart so wide, or null. */
export function layerAt(x, width, count) {
  const layer = Math.floor(((x - CHART_EDGE) / (width - 2 * CHART_EDGE)) * count);
  return layer >= 0 && layer < count ? layer : null;
}

/** Height from 0 to 1 of a norm between the smallest and the largest that are shown. */
export function logHeight(norm, low, high) {
  return high > low ? Math.log(norm / low) / Math.log(high / low) : 1;
}

/** @param {{left: number, attention_added: number|null, mlp_added: number|null}[]} layers */
export function paintResiduals({ g, w, h, canvas }, layers, { chosen, hover }) {
  const palette = paletteOf(canvas.closest('.block-view'));
  const shown = layers.flatMap(({ left, attention_added: a, mlp_added: m }) => [left, a, m]).filter((norm) => norm > 0);
  const low = Math.min(...shown) / 1.5;
  const high = Math.max(...shown);
  const each = (w - 2 * CHART_EDGE) / layers.length;
  const y = (norm) => h - 2 - (h - 6) * logHeight(norm, low, high);
  layers.forEach(({ left, attention_added: attention, mlp_added: mlp }, i) => {
    const x = CHART_EDGE + i * each;
    const wide = Math.max(1, each - Math.min(4, each / 4));
    g.globalAlpha = i === chosen ? 1 : i === hover ? 0.75 : 0.42;
    g.fillStyle = palette.accent.css;
    g.fillRect(x, y(left), wide, h - 2 - y(left));
    g.globalAlpha = 1;
    if (mlp) mark(g, x, y(mlp), wide, palette, true);
    if (attention) mark(g, x, y(attention), wide, palette, false);
    if (i === chosen) {
      g.strokeStyle = palette.text.css;
      g.lineWidth = 2;
      g.strokeRect(x - 1, 1, wide + 2, h - 2);
    }
  });
}

/** Attention's mark is a filled dot, the MLP's a line across: they differ by form, not by hue. */
function mark(g, x, y, wide, palette, isLine) {
  g.fillStyle = g.strokeStyle = palette.text.css;
  if (isLine) {
    g.fillRect(x, y - 1, wide, 2);
    return;
  }
  g.beginPath();
  g.arc(x + wide / 2, y, Math.min(3.5, wide / 2), 0, 2 * Math.PI);
  g.fill();
}
