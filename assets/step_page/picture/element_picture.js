/**
 * What is on screen of an element, as SVG: boxes as rectangles, text as text, canvases drawn again, drawings copied.
 *
 * It reads the page as the browser has laid it out and changes nothing. What only a style sheet draws is known as far as our
 * style sheets use it: plain and linear backgrounds, borders, rings, words before an element.
 */

import { drawWith } from '../drawing/canvas.js';
import { boxShapes, linearGradient } from './box_shapes.js';
import { inkAttributes, inkOf, svgElement, svgNumber, svgText } from './svg_markup.js';
import { SvgPen } from './svg_pen.js';
import { rulerFor, textToSvg } from './text_runs.js';

const NEVER = '.visually-hidden, .lp-tip, .take-box, dialog, script, style, template, [popover]:not(:popover-open)';
const INHERITED = ['fill', 'stroke', 'stroke-width', 'stroke-dasharray', 'stroke-linecap', 'stroke-linejoin', 'fill-opacity', 'stroke-opacity', 'opacity'];
const TYPE = { 'font-size': '16px', 'font-family': '', 'font-weight': '400', 'text-anchor': 'start', 'paint-order': 'normal' };

let frameCount = 0;

/**
 * @param {Element} element what is to be seen @param {{left: number, top: number}} origin the window's point that is 0, 0
 * @param {string} [leaves] a selector for what is left out
 */
export function elementPicture(element, origin, leaves = '') {
  return drawElement(element, { origin, leaves: leaves ? `${NEVER}, ${leaves}` : NEVER, cut: null });
}

function drawElement(element, view) {
  if (element.matches(view.leaves)) return '';
  const style = getComputedStyle(element);
  if (style.display === 'none' || style.opacity === '0') return '';
  const rect = element.getBoundingClientRect();
  const box = { x: rect.left - view.origin.left, y: rect.top - view.origin.top, width: rect.width, height: rect.height };
  const isSeen = style.visibility === 'visible' && style.display !== 'contents';
  const own = isSeen && !(element instanceof SVGElement) ? boxShapes(box, style) : '';
  const inside = insideOf(element, style, box, rect, view);
  const whole = masked(own + inside, box, style.maskImage);
  return style.opacity === '1' || !whole ? whole : svgElement('g', { opacity: style.opacity }, whole);
}

function insideOf(element, style, box, rect, view) {
  if (style.visibility !== 'visible' && (element instanceof HTMLCanvasElement || element instanceof SVGElement)) return '';
  if (element instanceof HTMLCanvasElement) return canvasPicture(element, box);
  if (element instanceof SVGElement) return drawingPicture(element, box);
  if (element instanceof HTMLInputElement) return element.type === 'range' ? sliderPicture(element, style, box) : '';
  if (element instanceof HTMLTextAreaElement) return '';
  const clips = style.overflowX !== 'visible' && box.width > 0;
  const cut = clips && style.textOverflow === 'ellipsis' ? { right: rect.right - parseFloat(style.paddingRight) } : clips ? null : view.cut;
  const children = drawChildren(element, style, rect, { ...view, cut });
  const isTooLarge = element.scrollWidth > element.clientWidth + 1 || element.scrollHeight > element.clientHeight + 1 || parseFloat(style.borderTopLeftRadius) > 0;
  return clips && isTooLarge && children ? clipped(children, box, parseFloat(style.borderTopLeftRadius) || 0) : children;
}

function drawChildren(element, style, rect, view) {
  const out = [beforeWords(element, style, rect, view)];
  for (const node of element.childNodes) {
    if (node.nodeType === Node.ELEMENT_NODE) out.push(drawElement(node, view));
    else if (node.nodeType === Node.TEXT_NODE && node.data.trim() && style.visibility === 'visible') out.push(textToSvg(node, style, view.origin, view.cut));
  }
  return out.join('');
}

function clipped(inside, { x, y, width, height }, radius) {
  const id = `loupe-frame-${++frameCount}`;
  return svgElement('clipPath', { id }, svgElement('rect', { x, y, width, height, rx: Math.min(radius, width / 2, height / 2) || '' }))
    + svgElement('g', { 'clip-path': `url(#${id})` }, inside);
}

/** What fades out along a gradient. */
function masked(inside, { x, y, width, height }, css) {
  const gradient = inside && css !== 'none' ? linearGradient(css, true) : null;
  if (!gradient) return inside;
  const id = `loupe-mask-${++frameCount}`;
  const mask = svgElement('mask', { id, maskUnits: 'userSpaceOnUse', x, y, width, height }, svgElement('rect', { x, y, width, height, fill: `url(#${gradient.id})` }));
  return gradient.markup + mask + svgElement('g', { mask: `url(#${id})` }, inside);
}

/** Words that a style sheet puts before an element: in a place of their own, or in front of its first. */
function beforeWords(element, style, rect, { origin }) {
  const before = getComputedStyle(element, '::before');
  const words = /^"(.*)"$/s.exec(before.content)?.[1];
  if (!words?.trim() || before.display === 'none') return '';
  const size = parseFloat(before.fontSize);
  const font = { family: before.fontFamily, size, weight: before.fontWeight };
  const ink = inkAttributes('fill', before.color);
  if (before.position === 'absolute') {
    const middle = rect.left + element.clientLeft + parseFloat(before.left) + parseFloat(before.width) / 2 - origin.left;
    return svgText(words, middle, rect.top + rect.height / 2 + size * 0.35 - origin.top, { ...font, anchor: 'middle' }, ink);
  }
  const range = document.createRange();
  range.selectNodeContents(element);
  const first = range.getClientRects()[0];
  if (!first) return '';
  const left = first.left - rulerFor(before).measureText(words).width;
  return svgText(words.trimEnd(), left - origin.left, first.top + first.height * 0.78 - origin.top, font, ink);
}

function canvasPicture(canvas, box) {
  if (!box.width || !box.height) return '';
  const pen = new SvgPen(canvas.width / box.width);
  const drawn = drawWith(canvas, pen)
    ? pen.markup
    : svgElement('image', { width: box.width, height: box.height, href: canvas.toDataURL('image/png') });
  return clipped(svgElement('g', { transform: `translate(${svgNumber(box.x)} ${svgNumber(box.y)})` }, drawn), box, 0);
}

/** A drawing that is SVG already: its shapes, with what style sheets say of them written on each. */
function drawingPicture(svg, box) {
  const view = svg.viewBox?.baseVal;
  const scale = view?.width ? box.width / view.width : 1;
  const inside = [...svg.children].map(copyShape).join('');
  return inside && svgElement('g', { transform: `translate(${svgNumber(box.x)} ${svgNumber(box.y)})${scale === 1 ? '' : ` scale(${scale.toFixed(4)})`}` }, inside);
}

function copyShape(shape) {
  const style = getComputedStyle(shape);
  if (style.display === 'none') return '';
  const attributes = {};
  for (const { name, value } of shape.attributes) if (!/^(class|style|data-|aria-|role|tabindex)/.test(name)) attributes[name] = value;
  for (const name of INHERITED) {
    const value = style.getPropertyValue(name);
    if (/^(fill|stroke)$/.test(name)) {
      const { colour, alpha } = value === 'none' ? { colour: 'none', alpha: 1 } : inkOf(value);
      attributes[name] = colour;
      if (alpha < 1) attributes[`${name}-opacity`] = alpha * Number(style.getPropertyValue(`${name}-opacity`));
    } else if (!(name in attributes && name.endsWith('-opacity')) && !['1', 'none', 'butt', 'miter'].includes(value)) attributes[name] = value.replaceAll('px', '');
  }
  if (shape.tagName !== 'text') return svgElement(shape.tagName, attributes, [...shape.children].map(copyShape).join(''));
  for (const [name, plain] of Object.entries(TYPE)) {
    const value = style.getPropertyValue(name);
    if (value !== plain) attributes[name] = value.replace(/px$/, '');
  }
  return textElement(shape, attributes);
}

/** A text of a drawing. A halo, which is a wide stroke under the letters, is a text of its own: few programs know the order. */
function textElement(shape, { 'paint-order': order, ...attributes }) {
  const { x, y, ...rest } = attributes;
  const write = (ink) => {
    const { 'font-family': family, 'font-size': size, 'font-weight': weight, 'text-anchor': anchor } = rest;
    return svgText(shape.textContent, Number(x), Number(y), { family, size: Number(size ?? 16), weight, anchor }, ink);
  };
  const letters = write({ fill: rest.fill, 'fill-opacity': rest['fill-opacity'] });
  if (rest.stroke === 'none' || !order?.startsWith('stroke')) return letters;
  return write({ fill: 'none', stroke: rest.stroke, 'stroke-width': rest['stroke-width'], 'stroke-linejoin': 'round' }) + letters;
}

/** A slider: its track, as far as it is filled, and its thumb. */
function sliderPicture(input, style, { x, y, width, height }) {
  const share = (Number(input.value) - Number(input.min)) / (Number(input.max) - Number(input.min) || 1);
  const middle = y + height / 2;
  const colour = (role) => inkAttributes('stroke', style.getPropertyValue(`--${role}`) || style.color);
  const bar = (from, to, role) => svgElement('line', { x1: from, x2: to, y1: middle, y2: middle, ...colour(role), 'stroke-width': 4, 'stroke-linecap': 'round' });
  const at = x + 8 + share * (width - 16);
  const thumb = svgElement('circle', { cx: at, cy: middle, r: 6.5, ...inkAttributes('fill', style.getPropertyValue('--text') || style.color), ...colour('accent'), 'stroke-width': 1.5 });
  return bar(x + 2, x + width - 2, 'control') + (input.closest('[data-off="true"]') ? '' : bar(x + 2, at, 'accent')) + thumb;
}
