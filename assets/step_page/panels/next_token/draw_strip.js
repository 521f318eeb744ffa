/**
 * The draw: [0, 1) shared out among the tokens by falling probability, and where the uniform number fell.
 */

import { make } from '../../drawing/dom.js';
import { formatCount, formatProb } from '../../drawing/format.js';
import { plainToken } from '../../drawing/pieces.js';
import { namedToken } from '../../drawing/token_names.js';
import { mixColour, paletteOf } from '../../drawing/palette.js';
import { fitLabel, makeSurface, reducedMotion } from '../../drawing/canvas.js';

/**
 * Segments of [0, 1): tokens by falling probability, then everything that is not a candidate as one rest.
 * @param {ArrayLike<number>} ids @param {ArrayLike<number>} probs aligned with ids
 * @returns {Array<{id: number|null, low: number, high: number}>} id null: the rest
 */
export function drawSegments(ids, probs) {
  const order = Array.from(probs, (_, i) => i).filter((i) => probs[i] > 0).sort((a, b) => probs[b] - probs[a]);
  const segments = [];
  let low = 0;
  for (const i of order) {
    const high = Math.min(1, low + probs[i]);
    segments.push({ id: ids[i], low, high });
    low = high;
  }
  if (1 - low > 1e-4) segments.push({ id: null, low, high: 1 });
  else if (segments.length) segments.at(-1).high = 1;
  return segments;
}

/** What is said under the strip. */
function drawWords(draw, nameOf) {
  if (draw.mode === 'greedy') return 'argmax: the likeliest token is taken, no random number';
  if (draw.mode === 'multinomial') return 'sampled by torch.multinomial';
  if (draw.mode === 'forced') return `forced; the sampler had chosen ${nameOf(draw.drawn_id)}${draw.u === null ? '' : ` at u = ${draw.u.toFixed(3)}`}`;
  return `u = ${draw.u.toFixed(3)}`;
}

export class DrawStrip {
  constructor(root, panelRoot, tip) {
    this.panelRoot = panelRoot;
    const host = make('div.lp-canvas.lp-draw', { role: 'img', 'aria-label': 'Sampling: tokens share the interval from 0 to 1 by falling probability' });
    root.append(host);
    this.view = null;
    this.landing = null; // {start, ms}: u is on its way, and nothing is chosen yet
    this.surface = makeSurface(host, () => this.view && this.#paint());
    this.surface.canvas.addEventListener('pointermove', (event) => this.#tell(event, tip));
    this.surface.canvas.addEventListener('pointerleave', () => tip.hide());
  }

  /** @param view {ids, probs, draw, tried: not what was drawn from, pieces: Map, others: tokens beyond the candidates still kept} */
  draw(view) {
    this.view = { ...view, segments: drawSegments(view.ids, view.probs) };
    this.#splitRest();
    this.surface.paint();
  }

  /** Let u run along the strip to its place, from the next drawing on; in no time where `ms` is 0. */
  land(ms) {
    this.landing = ms && !reducedMotion() ? { start: performance.now(), ms } : null;
  }

  /** How much of its way u has come, 1: it is there. */
  get #landed() {
    const share = this.landing ? Math.min(1, (performance.now() - this.landing.start) / this.landing.ms) : 1;
    if (share === 1) this.landing = null;
    return 1 - (1 - share) ** 3;
  }

  /** A token drawn from beyond the candidates gets its own place in the rest. */
  #splitRest() {
    const { draw, segments, tried } = this.view;
    const rest = segments.at(-1);
    const outside = !tried && rest?.id === null && !segments.some((segment) => segment.id === draw.drawn_id);
    if (!outside || draw.high <= rest.low) return;
    segments.splice(-1, 1, { ...rest, high: draw.low }, { id: draw.drawn_id, low: draw.low, high: draw.high }, { ...rest, low: draw.high });
  }

  #colour(id, palette) {
    const { draw } = this.view;
    if (id === null) return mixColour(palette.card, palette.mute, 0.2);
    if (id === draw.token_id && !this.landing) return mixColour(palette.card, draw.mode === 'forced' ? palette.forced : palette.gen, 0.55);
    return mixColour(palette.card, palette.accent, 0.32);
  }

  #paint() {
    const { g, w, h } = this.surface;
    const { segments, draw, pieces, tried } = this.view;
    const palette = paletteOf(this.panelRoot);
    const landed = this.#landed;
    if (this.landing) this.surface.ask();
    const size = palette.label;
    const top = 5;
    const height = h - top - size * 1.75;
    g.textBaseline = 'middle';
    for (const { id, low, high } of segments) {
      const x = low * w;
      const width = (high - low) * w;
      g.fillStyle = this.#colour(id, palette).css;
      g.fillRect(x, top, Math.max(width > 2 ? width - 1 : width, 0.5), height);
      if (width < size * 1.6) continue;
      g.font = id === null ? `${size}px ${palette.font}` : `600 ${size}px ${palette.mono}`;
      g.textAlign = 'left';
      g.fillStyle = id === null ? palette.mute.css : palette.text.css;
      g.fillText(fitLabel(g, id === null ? 'others' : plainToken(pieces.get(id)), width - 9), x + 6, top + height / 2);
    }
    const drawn = segments.find(({ id }) => id === draw.token_id);
    if (drawn && (drawn.high - drawn.low) * w < 3) { // too narrow to be seen otherwise
      g.fillStyle = this.#colour(drawn.id, palette).css;
      g.fillRect(drawn.low * w - 1, top, 3, height);
    }
    g.font = `${size}px ${palette.font}`;
    g.fillStyle = palette.mute.css;
    const u = draw.u * landed;
    const words = landed < 1 ? `u = ${u.toFixed(3)}` : drawWords(draw, (id) => namedToken(pieces.get(id))) + (tried ? ' (what was sampled)' : '');
    if (draw.u === null) return this.#words(g, words, 0, w, h - size * 0.75);
    g.fillStyle = palette.text.css;
    const x = Math.max(1, Math.min(w - 1, u * w));
    g.fillRect(x - 1, 0, 2, height + 2 * top);
    g.beginPath();
    g.moveTo(x - 5, 0);
    g.lineTo(x + 5, 0);
    g.lineTo(x, 6);
    g.fill();
    return this.#words(g, words, x, w, h - size * 0.75);
  }

  #words(g, words, x, w, y) {
    const half = g.measureText(words).width / 2;
    g.textAlign = 'center';
    g.fillText(fitLabel(g, words, w), Math.max(half, Math.min(w - half, x)), y);
  }

  #tell(event, tip) {
    if (!this.view) return;
    const at = event.offsetX / this.surface.w;
    const segment = this.view.segments.find(({ low, high }) => at >= low && at < high);
    if (!segment) return tip.hide();
    const { id, low, high } = segment;
    const others = this.view.others;
    const title = id === null ? `${others > 0 ? `${formatCount(others)} ` : ''}other tokens` : namedToken(this.view.pieces.get(id));
    return tip.show(event.clientX, event.clientY, title, [
      ['probability', formatProb(high - low)], ['owns', `${low.toFixed(3)} to ${high.toFixed(3)}`],
    ]);
  }

  destroy() {
    this.surface.destroy();
  }
}
