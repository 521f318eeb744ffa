/** The text of a laid-out page, line by line, where it stands. */

import { inkAttributes, svgText } from './svg_markup.js';

const segmenter = typeof Intl.Segmenter === 'function' ? new Intl.Segmenter(undefined, { granularity: 'grapheme' }) : null;
const fontHeights = new Map();
let textRuler = null;

const fontOf = (style) => `${style.fontStyle} ${style.fontWeight} ${style.fontSize} ${style.fontFamily}`;

/** A context that measures text in the font of `style`. */
export function rulerFor(style) {
  textRuler ??= document.createElement('canvas').getContext('2d');
  textRuler.font = fontOf(style);
  return textRuler;
}

/** How much of a line's height lies above its baseline. */
function ascentShare(style) {
  const font = fontOf(style);
  if (!fontHeights.has(font)) {
    const { fontBoundingBoxAscent: up, fontBoundingBoxDescent: down } = rulerFor(style).measureText('x');
    fontHeights.set(font, up / (up + down));
  }
  return fontHeights.get(font);
}

function* graphemes(text) {
  if (segmenter) for (const { segment, index } of segmenter.segment(text)) yield [index, segment.length];
  else for (let i = 0; i < text.length; i += [...text.slice(i, i + 2)][0].length) yield [i, [...text.slice(i, i + 2)][0].length];
}

/**
 * The lines of a text node. @returns {{text: string, left: number, right: number, top: number, height: number}[]}
 */
export function textLines(node) {
  const range = document.createRange();
  range.selectNodeContents(node);
  const whole = [...range.getClientRects()].filter(({ width }) => width > 0);
  if (!whole.length) return [];
  const [{ top, height }] = whole;
  if (whole.every((rect) => Math.abs(rect.top - top) < height / 2)) return [lineOf(laidOut(node, range), whole)];
  const lines = [];
  for (const [from, length] of graphemes(node.data)) {
    range.setStart(node, from);
    range.setEnd(node, from + length);
    const rect = [...range.getClientRects()].find(({ width }) => width > 0);
    if (!rect) continue;
    const last = lines.at(-1);
    if (last && Math.abs(last.rects[0].top - rect.top) < rect.height / 2) {
      last.text += node.data.slice(from, from + length);
      last.rects.push(rect);
    } else lines.push({ text: node.data.slice(from, from + length), rects: [rect] });
  }
  return lines.map(({ text, rects }) => lineOf(text, rects));
}

/** The text without the spaces at its ends that take no room. */
function laidOut(node, range) {
  const { data } = node;
  const takesRoom = (at) => {
    range.setStart(node, at);
    range.setEnd(node, at + 1);
    return range.getBoundingClientRect().width > 0;
  };
  let [from, to] = [0, data.length];
  while (from < to && /[ \t\r\n]/.test(data[from]) && !takesRoom(from)) from += 1;
  while (to > from && /[ \t\r\n]/.test(data[to - 1]) && !takesRoom(to - 1)) to -= 1;
  return data.slice(from, to);
}

function lineOf(text, rects) {
  const left = Math.min(...rects.map((rect) => rect.left));
  return { text, left, right: Math.max(...rects.map((rect) => rect.right)), top: rects[0].top, height: rects[0].height };
}

/** As CSS shows it: what is not preformatted has no more than one space in a row. */
const shownText = (text, style) => (/^(pre|break-spaces)/.test(style.whiteSpace) ? text.replace(/[\r\n]+$/, '') : text.replace(/[ \t\r\n]+/g, ' '));

/** `text` cut to a width with an ellipsis. */
export function cutText(text, width, style) {
  const ruler = rulerFor(style);
  const parts = [...graphemes(text)];
  while (parts.length && ruler.measureText(`${text.slice(0, parts.at(-1)[0] + parts.at(-1)[1])}…`).width > width) parts.pop();
  return parts.length ? `${text.slice(0, parts.at(-1)[0] + parts.at(-1)[1])}…` : '…';
}

/**
 * A text node as SVG, its place taken from `origin`.
 * @param {{left: number, right: number} | null} cut the box that cuts its text with an ellipsis
 */
export function textToSvg(node, style, origin, cut) {
  const font = {
    family: style.fontFamily, size: parseFloat(style.fontSize), weight: style.fontWeight, style: style.fontStyle, spacing: style.letterSpacing,
    digits: style.fontVariantNumeric,
  };
  return textLines(node).map((line) => {
    const isRightToLeft = style.direction === 'rtl';
    const shown = shownText(line.text, style);
    if (!shown.trim()) return '';
    const isCut = cut && line.right > cut.right + 1;
    const text = isCut ? cutText(shown, cut.right - line.left, style) : shown;
    const at = isRightToLeft ? { x: line.right, direction: 'rtl' } : { x: line.left, direction: '' };
    const baseline = line.top + line.height * ascentShare(style) - origin.top;
    return svgText(text, at.x - origin.left, baseline, { ...font, direction: at.direction, wide: isCut ? '' : line.right - line.left }, inkAttributes('fill', style.color));
  }).join('');
}
