/**
 * Pieces of an SVG file as text: elements, numbers, colours. Whatever stands in it is escaped here and nowhere else.
 */

const NOT_IN_XML = /[^\t\n\r\u0020-\uD7FF\uE000-\uFFFD\u{10000}-\u{10FFFF}]/gu; // and halves of surrogate pairs
const XML_SIGNS = { '&': '&amp;', '<': '&lt;', '>': '&gt;', '"': '&quot;', '\t': '&#9;', '\n': '&#10;', '\r': '&#13;' };
const inks = new Map();
let inkPen = null;

/** Text as XML takes it: signs escaped, and U+FFFD for what no XML file may hold. */
export function xmlText(text) {
  return String(text).replace(NOT_IN_XML, '\uFFFD').replace(/[&<>"\t\n\r]/g, (sign) => XML_SIGNS[sign]);
}

/** 1.23456 -> "1.23": a hundredth of a pixel is enough for twice the size. */
export const svgNumber = (number) => String(Math.round(number * 100) / 100);

/** An element. Attributes that are null, undefined or '' are left out; `inside` is markup already. */
export function svgElement(tag, attributes, inside = '') {
  const written = Object.entries(attributes)
    .filter(([, value]) => value !== null && value !== undefined && value !== '')
    .map(([name, value]) => ` ${name}="${typeof value === 'number' ? svgNumber(value) : xmlText(value)}"`)
    .join('');
  return inside ? `<${tag}${written}>${inside}</${tag}>` : `<${tag}${written}/>`;
}

/** Whatever CSS calls a colour, as one that every SVG program knows, and its opacity. @returns {{colour: string, alpha: number}} */
export function inkOf(css) {
  if (!inks.has(css)) inks.set(css, readInk(css));
  return inks.get(css);
}

function readInk(css) {
  const numbers = css.match(/-?[\d.]+(e-?\d+)?/g)?.map(Number) ?? [];
  const isShare = css.startsWith('color(srgb ');
  if (!isShare && !/^rgba?\(/.test(css)) return pixelInk(css);
  const [r, g, b, alpha = 1] = numbers;
  return hexInk([r, g, b].map((part) => (isShare ? part * 255 : part)), alpha);
}

function hexInk(parts, alpha) {
  const hex = parts.map((part) => Math.max(0, Math.min(255, Math.round(part))).toString(16).padStart(2, '0'));
  return { colour: `#${hex.join('')}`, alpha };
}

/** The browser paints the colour, and the pixel is read. */
function pixelInk(css) {
  inkPen ??= Object.assign(document.createElement('canvas'), { width: 1, height: 1 }).getContext('2d', { willReadFrequently: true });
  inkPen.clearRect(0, 0, 1, 1);
  inkPen.fillStyle = css;
  inkPen.fillRect(0, 0, 1, 1);
  const [r, g, b, alpha] = inkPen.getImageData(0, 0, 1, 1).data;
  return hexInk([r, g, b], alpha / 255);
}

/** fill, or stroke, of an element; '' where nothing would be seen. */
export function inkAttributes(kind, css, opacity = 1) {
  const { colour, alpha } = inkOf(css);
  const shown = alpha * opacity;
  return { [kind]: colour, [`${kind}-opacity`]: shown < 0.999 ? Math.round(shown * 1000) / 1000 : '' };
}

/**
 * Text at its baseline, with the font that CSS calls so. @param {object} font {family, size, weight, style, spacing, digits};
 *   wide: its width in pixels, which a program without the font keeps to, so that words do not run into each other
 */
export function svgText(text, x, y, { family, size, weight, style, spacing, digits, anchor, direction, rotate, wide }, ink) {
  return svgElement('text', {
    x, y, ...ink,
    'font-family': family, 'font-size': size,
    'font-weight': /^(400|normal)?$/.test(weight ?? '') ? '' : weight,
    'font-style': style === 'normal' ? '' : style,
    'letter-spacing': spacing && spacing !== 'normal' ? spacing : '',
    'text-anchor': anchor, direction, transform: rotate,
    textLength: wide, lengthAdjust: wide ? 'spacingAndGlyphs' : '',
    'xml:space': /^\s|\s$|\s\s/.test(text) ? 'preserve' : '',
    style: digits && digits !== 'normal' ? `font-variant-numeric: ${digits}` : '',
  }, xmlText(text));
}
