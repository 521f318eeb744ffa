/**
 * The draw: [0, 1) shared out among the tokens by falling probability, and where the uniform number fell.
 */

import { make } from '../../drawing/dom.js';
import { formatCount, formatProb } from '../../drawing/format.js';
import { plainToken } from '../../drawing/pieces.js';
import { namedToken } from '../../drawing/token_names.js';
import { mixColour, paletteOf } from '../../drawing/palette.js';
import { fitLabel, makeSurface, reducedMotion } from '../../drawing/canvas.js';
import { say } from '../../drawing/say.js';
import { segmentAt } from './segments.js';

/** What is said under the strip. */
function drawWords(draw, nameOf) {
  if (draw.mode === 'greedy') return say('draw_strip.greedy');
  if (draw.mode === 'multinomial') return say('draw_strip.multinomial');
  if (draw.mode === 'forced') return draw.u === null ? say('draw_strip.forced', { token: nameOf(draw.drawn_id) }) : say('draw_strip.forced_at', { token: nameOf(draw.drawn_id), u: draw.u.toFixed(3) });
  return `u = ${draw.u.toFixed(3)}`;
}

export class DrawStrip {
  constructor(root, panelRoot, tip) {
    this.panelRoot = panelRoot;
    const host = make('div.lp-canvas.lp-draw', { role: 'img', 'aria-label': say('draw_strip.label') });
    this.beside = make('div.lp-trials'); // room for what samples again
    root.append(make('div.lp-draw-line', {}, host, this.beside));
    this.view = null;
    this.landing = null; // {start, ms}: u is on its way, and nothing is chosen yet
    this.surface = makeSurface(host, () => this.view && this.#paint());
    this.surface.canvas.addEventListener('pointermove', (event) => this.#tell(event, tip));
    this.surface.canvas.addEventListener('pointerleave', () => tip.hide());
  }

  /**
   * @param view {segments, draw, tried: not what was drawn from, pieces: Map, others: tokens beyond the candidates still kept,
   *   again: another u that is only tried, or null}
   */
  draw(view) {
    this.view = view;
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

  /** @returns {(id: number|null) => string} the colour of a token's share */
  #colours(palette) {
    const { draw } = this.view;
    const rest = mixColour(palette.card, palette.mute, 0.2).css;
    const other = mixColour(palette.card, palette.accent, 0.32).css;
    const chosen = this.landing ? other : mixColour(palette.card, draw.mode === 'forced' ? palette.forced : palette.gen, 0.55).css;
    return (id) => (id === null ? rest : id === draw.token_id ? chosen : other);
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
    const colours = this.#colours(palette);
    for (const { id, low, high } of segments) {
      const x = low * w;
      const width = (high - low) * w;
      g.fillStyle = colours(id);
      g.fillRect(x, top, Math.max(width > 2 ? width - 1 : width, 0.5), height);
      if (width < size * 1.6) continue;
      g.font = id === null ? `${size}px ${palette.font}` : `600 ${size}px ${palette.mono}`;
      g.textAlign = 'left';
      g.fillStyle = id === null ? palette.mute.css : palette.text.css;
      g.fillText(fitLabel(g, id === null ? 'others' : plainToken(pieces.get(id)), width - 9), x + 6, top + height / 2);
    }
    const drawn = segments.find(({ id }) => id === draw.token_id);
    if (drawn && (drawn.high - drawn.low) * w < 3) { // too narrow to be seen otherwise
      g.fillStyle = colours(drawn.id);
      g.fillRect(drawn.low * w - 1, top, 3, height);
    }
    g.font = `${size}px ${palette.font}`;
    g.fillStyle = palette.mute.css;
    const u = draw.u * landed;
    const whole = drawWords(draw, (id) => namedToken(pieces.get(id)));
    const words = landed < 1 ? `u = ${u.toFixed(3)}` : tried ? say('draw_strip.was', { drawn: whole }) : whole;
    const deep = height + 2 * top;
    if (draw.u !== null) this.#needle(g, u * w, deep, palette.text.css, true);
    if (this.view.again !== null) {
      this.#needle(g, this.view.again * w, deep, palette.accent.css, false);
      const all = this.againWords(words);
      return this.#words(g, g.measureText(all).width > w ? this.againWords('') : all, 0, w, h - size * 0.75);
    }
    return this.#words(g, words, draw.u === null ? 0 : u * w, w, h - size * 0.75);
  }

  /** "u = 0.279 · again: u = 0.731 falls on “ the”", after what is said of the run's own u. */
  againWords(own) {
    const { again, segments, pieces, others } = this.view;
    const id = segmentAt(segments, again)?.id ?? null;
    const token = id === null ? say('sampling.one_of', { count: formatCount(others) }) : namedToken(pieces.get(id));
    const words = say('sampling.again_said', { u: again.toFixed(3), token });
    return own ? `${own} · ${words}` : words;
  }

  /** Where a number fell: the run's own is solid, one that is only tried is open. */
  #needle(g, at, deep, colour, isOwn) {
    const x = Math.max(1, Math.min(this.surface.w - 1, at));
    g.fillStyle = g.strokeStyle = colour;
    g.lineWidth = 1.5;
    g.setLineDash(isOwn ? [] : [3, 2]);
    g.beginPath();
    g.moveTo(x, 0);
    g.lineTo(x, deep);
    g.stroke();
    g.setLineDash([]);
    g.beginPath();
    g.moveTo(x - 5, 0.5);
    g.lineTo(x + 5, 0.5);
    g.lineTo(x, 6.5);
    g.closePath();
    if (isOwn) g.fill();
    else g.stroke();
  }

  #words(g, words, x, w, y) {
    const half = g.measureText(words).width / 2;
    g.textAlign = 'center';
    g.fillText(fitLabel(g, words, w), Math.max(half, Math.min(w - half, x)), y);
  }

  #tell(event, tip) {
    if (!this.view) return;
    const at = event.offsetX / this.surface.w;
    const segment = segmentAt(this.view.segments, at);
    if (!segment) return tip.hide();
    const { id, low, high } = segment;
    const others = this.view.others;
    const title = id === null ? others > 0 ? say('draw_strip.others', { n: others }) : say('draw_strip.other') : namedToken(this.view.pieces.get(id));
    return tip.show(event.clientX, event.clientY, title, [
      ['probability', formatProb(high - low)], ['owns', `${low.toFixed(3)} to ${high.toFixed(3)}`],
    ]);
  }

  destroy() {
    this.surface.destroy();
  }
}
