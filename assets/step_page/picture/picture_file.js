/**
 * A picture to take away: a title, what is on screen of some elements one below the other, and a line that says what it is of.
 *
 * The PNG is the SVG, painted at twice its size.
 */

import { elementPicture } from './element_picture.js';
import { fontRules } from './page_fonts.js';
import { inkAttributes, svgElement, svgNumber, svgText, xmlText } from './svg_markup.js';
import { rulerFor } from './text_runs.js';

const PICTURE_EDGE = 18; // pixels around it
const PICTURE_GAP = 8; // between its parts
const NARROWEST_PICTURE = 320;
export const PNG_SCALE = 2;

/** Text in lines that are no wider than `width`; a word that is too long is broken. */
export function wrappedText(text, width, measure) {
  const lines = [''];
  for (const word of text.split(/(?<=\s)/)) {
    if (measure(lines.at(-1) + word.trimEnd()) <= width) lines[lines.length - 1] += word;
    else if (measure(word.trimEnd()) <= width) lines.push(word);
    else for (const sign of word) {
      if (measure(lines.at(-1) + sign) > width) lines.push('');
      lines[lines.length - 1] += sign;
    }
  }
  return lines.map((line) => line.trim()).filter(Boolean);
}

/** Lines of text from y on. @returns {{markup: string, height: number}} */
function paragraph(text, y, width, { family, size, weight = '400', colour }) {
  const ruler = rulerFor({ fontStyle: 'normal', fontWeight: weight, fontSize: `${size}px`, fontFamily: family });
  const lines = wrappedText(text, width, (part) => ruler.measureText(part).width);
  const high = size * 1.35;
  const drawn = lines.map((line, i) => svgText(line, PICTURE_EDGE, y + i * high + size, { family, size, weight, wide: ruler.measureText(line).width }, inkAttributes('fill', colour)));
  return { markup: drawn.join(''), height: lines.length * high };
}

/**
 * @param {{root: Element, parts: Element[], title: string, note?: string, source: string, leaves?: string}} what
 *   root: whose colours and type it has; leaves: a selector for what is left out
 * @returns {{markup: string, width: number, height: number}} the inside of the picture
 */
function composePicture({ root, parts, title, note = '', source, leaves }) {
  const style = getComputedStyle(root);
  const role = (name) => style.getPropertyValue(`--${name}`).trim() || (name === 'card' ? '#fff' : style.color);
  const size = Math.max(12, parseFloat(style.fontSize));
  const shown = parts.map((part) => [part, part.getBoundingClientRect()]).filter(([, { width, height }]) => width > 0 && height > 0);
  const inner = Math.ceil(Math.max(NARROWEST_PICTURE, ...shown.map(([, { width }]) => width)));
  const words = { family: style.fontFamily };
  const out = [];
  let y = PICTURE_EDGE;
  const add = ({ markup, height }) => {
    out.push(markup);
    y += height;
  };
  add(paragraph(title, y, inner, { ...words, size: size * 1.15, weight: '650', colour: role('text') }));
  if (note) add(paragraph(note, y, inner, { ...words, size: Math.max(12, size * 0.9), colour: role('mute') }));
  for (const [part, rect] of shown) {
    y += PICTURE_GAP;
    const origin = { left: Math.floor(rect.left), top: Math.floor(rect.top) };
    add({ markup: svgElement('g', { transform: `translate(${PICTURE_EDGE} ${svgNumber(y)})` }, elementPicture(part, origin, leaves)), height: Math.ceil(rect.height) });
  }
  y += PICTURE_GAP * 1.5;
  add(paragraph(source, y, inner, { ...words, size: Math.max(11, size * 0.78), colour: role('mute') }));
  const [width, height] = [inner + 2 * PICTURE_EDGE, Math.ceil(y + PICTURE_EDGE)];
  const ground = svgElement('rect', { width, height, ...inkAttributes('fill', role('card')) });
  return { markup: ground + out.join(''), width, height };
}

/** @param {object} what see composePicture @returns {Promise<{svg: string, width: number, height: number}>} a whole SVG file */
export async function takePicture(what) {
  const { markup, width, height } = composePicture(what); // first and at once: the page goes on while fonts are read
  const fonts = await fontRules(markup);
  const inside = `${svgElement('title', {}, xmlText(what.title))}${svgElement('desc', {}, xmlText(what.source))}${fonts ? `<style>${fonts}</style>` : ''}${markup}`;
  const svg = svgElement('svg', { xmlns: 'http://www.w3.org/2000/svg', width, height, viewBox: `0 0 ${width} ${height}` }, inside);
  return { svg: `<?xml version="1.0" encoding="UTF-8"?>\n${svg}\n`, width, height };
}

export const svgFile = ({ svg }) => new Blob([svg], { type: 'image/svg+xml' });

/** @returns {Promise<Blob>} a picture as PNG */
export async function pngFile(picture) {
  const address = URL.createObjectURL(svgFile(picture));
  try {
    const image = Object.assign(new Image(), { src: address });
    await image.decode();
    const canvas = Object.assign(document.createElement('canvas'), { width: picture.width * PNG_SCALE, height: picture.height * PNG_SCALE });
    canvas.getContext('2d').drawImage(image, 0, 0, canvas.width, canvas.height);
    return await new Promise((resolve, reject) => canvas.toBlob((blob) => (blob ? resolve(blob) : reject(new Error(`${canvas.width} × ${canvas.height}`))), 'image/png'));
  } finally {
    URL.revokeObjectURL(address);
  }
}
