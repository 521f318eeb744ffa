/** What CSS draws of a box: background, gradients along it, borders, a ring around it. */

import { inkAttributes, inkOf, svgElement, svgNumber } from './svg_markup.js';

const SIDES = ['Top', 'Right', 'Bottom', 'Left'];
const DASHES = { dashed: (w) => `${w * 2.5} ${w * 2}`, dotted: (w) => `${w} ${w * 1.5}` };

let gradientCount = 0;

const isSeen = (css) => inkOf(css).alpha > 0.004;

/** Split at commas that stand in no bracket. */
function splitCss(text) {
  const parts = [''];
  let depth = 0;
  for (const sign of text) {
    depth += sign === '(' ? 1 : sign === ')' ? -1 : 0;
    if (sign === ',' && !depth) parts.push('');
    else parts[parts.length - 1] += sign;
  }
  return parts.map((part) => part.trim());
}

/**
 * linear-gradient(90deg, red 0%, blue) -> a gradient and what fills with it; null for anything else
 * @param {boolean} isMask only its opacity counts
 */
export function linearGradient(css, isMask = false) {
  const inside = /^linear-gradient\((.*)\)$/s.exec(css)?.[1];
  if (!inside) return null;
  const parts = splitCss(inside);
  const angle = /^(-?[\d.]+)deg$/.exec(parts[0]);
  const stops = angle || parts[0].startsWith('to ') ? parts.slice(1) : parts;
  const turn = ((angle ? Number(angle[1]) : parts[0] === 'to right' ? 90 : 180) * Math.PI) / 180;
  const [dx, dy] = [Math.sin(turn) / 2, -Math.cos(turn) / 2];
  const id = `loupe-gradient-${++gradientCount}`;
  const drawn = stops.map((stop, i) => {
    const [, css_, place] = /^(.*?)(?:\s+(-?[\d.]+)%)?$/s.exec(stop);
    const ink = inkAttributes('stop', css_);
    return svgElement('stop', { offset: place === undefined ? i / (stops.length - 1) : Number(place) / 100, 'stop-color': isMask ? '#fff' : ink.stop, 'stop-opacity': ink['stop-opacity'] });
  });
  return { id, markup: svgElement('linearGradient', { id, x1: 0.5 - dx, y1: 0.5 - dy, x2: 0.5 + dx, y2: 0.5 + dy }, drawn.join('')) };
}

/** A box in the picture's coordinates with the style that the browser has worked out for it. */
export function boxShapes({ x, y, width, height }, style) {
  if (width <= 0 || height <= 0) return '';
  const radius = Math.min(parseFloat(style.borderTopLeftRadius) || 0, width / 2, height / 2);
  const out = [];
  if (isSeen(style.backgroundColor)) out.push(ground({ x, y, width, height }, style, inkAttributes('fill', style.backgroundColor)));
  const gradient = linearGradient(style.backgroundImage);
  if (gradient) out.push(gradient.markup, ground({ x, y, width, height }, style, { fill: `url(#${gradient.id})` }));
  out.push(dotRow({ x, y, width, height }, style), insetRing({ x, y, width, height, radius }, style), ...borders({ x, y, width, height, radius }, style));
  if (style.outlineStyle === 'solid' && parseFloat(style.outlineWidth) && isSeen(style.outlineColor)) {
    const thick = parseFloat(style.outlineWidth);
    const off = parseFloat(style.outlineOffset) + thick / 2;
    out.push(svgElement('rect', { x: x - off, y: y - off, width: width + 2 * off, height: height + 2 * off, rx: radius ? Math.max(0, radius + off) : '', fill: 'none', ...inkAttributes('stroke', style.outlineColor), 'stroke-width': thick }));
  }
  return out.join('');
}

/** What lies under a box: a rectangle, or an outline where its corners differ. */
function ground({ x, y, width, height }, style, ink) {
  const most = Math.min(width, height) / 2;
  const radii = ['TopLeft', 'TopRight', 'BottomRight', 'BottomLeft'].map((corner) => Math.min(parseFloat(style[`border${corner}Radius`]) || 0, most));
  if (radii.every((radius) => radius === radii[0])) return svgElement('rect', { x, y, width, height, rx: radii[0] || '', ...ink });
  const [a, b, c, d] = radii;
  const turn = (radius, dx, dy) => `a${svgNumber(radius)} ${svgNumber(radius)} 0 0 1 ${svgNumber(dx)} ${svgNumber(dy)}`;
  const path = `M${svgNumber(x + a)} ${svgNumber(y)}H${svgNumber(x + width - b)}${turn(b, b, b)}V${svgNumber(y + height - c)}${turn(c, -c, c)}H${svgNumber(x + d)}${turn(d, -d, -d)}V${svgNumber(y + a)}${turn(a, a, -a)}Z`;
  return svgElement('path', { d: path, ...ink });
}

/** Dots side by side, each as wide as the background's size says: a radial gradient that repeats. */
function dotRow({ x, y, width, height }, style) {
  const dot = /^radial-gradient\(circle[^,]*, ((?:rgb|color)[^)]*\)) (?:max\()?([\d.]+)px/.exec(style.backgroundImage);
  if (!dot) return '';
  const share = /^([\d.]+)(px|%)/.exec(style.backgroundSize) ?? [null, '100', '%'];
  const each = share[2] === 'px' ? Number(share[1]) : (width * Number(share[1])) / 100;
  const count = each > 0 ? Math.min(1000, Math.floor(width / each + 0.01)) : 0;
  const r = Math.min(Number(dot[2]), height / 2);
  return Array.from({ length: count }, (_, i) => svgElement('circle', { cx: x + (i + 0.5) * each, cy: y + height / 2, r, ...inkAttributes('fill', dot[1]) })).join('');
}

/** box-shadow: inset 0 0 0 1px */
function insetRing({ x, y, width, height, radius }, style) {
  const ring = /^(.*\)) 0px 0px 0px ([\d.]+)px inset$/.exec(style.boxShadow);
  if (!ring) return '';
  const thick = Number(ring[2]);
  return svgElement('rect', { x: x + thick / 2, y: y + thick / 2, width: Math.max(0, width - thick), height: Math.max(0, height - thick), rx: radius || '', fill: 'none', ...inkAttributes('stroke', ring[1]), 'stroke-width': thick });
}

function borders(box, style) {
  const sides = SIDES.map((side) => ({
    width: parseFloat(style[`border${side}Width`]) || 0, style: style[`border${side}Style`], colour: style[`border${side}Color`],
  }));
  const drawn = sides.map((side) => side.width > 0 && !['none', 'hidden'].includes(side.style) && isSeen(side.colour));
  if (!drawn.some(Boolean)) return [];
  const [first] = sides;
  const isEven = sides.every((side, i) => drawn[i] && side.width === first.width && side.style === first.style && side.colour === first.colour);
  return isEven ? [frame(box, first)] : sides.map((side, i) => (drawn[i] ? edge(box, side, i) : ''));
}

const strokeOf = ({ width, style, colour }) => ({ ...inkAttributes('stroke', colour), 'stroke-width': width, 'stroke-dasharray': DASHES[style]?.(width) });

function frame({ x, y, width, height, radius }, side) {
  const half = side.width / 2;
  return svgElement('rect', {
    x: x + half, y: y + half, width: Math.max(0, width - side.width), height: Math.max(0, height - side.width),
    rx: radius ? Math.max(0, radius - half) : '', fill: 'none', ...strokeOf(side),
  });
}

function edge({ x, y, width, height, radius }, side, i) {
  const half = side.width / 2;
  const inset = side.width < 1.5 ? 0 : radius / 2; // a thick edge of a rounded box must not stand out of its corners
  const ends = [
    [x + inset, y + half, x + width - inset, y + half], [x + width - half, y + inset, x + width - half, y + height - inset],
    [x + inset, y + height - half, x + width - inset, y + height - half], [x + half, y + inset, x + half, y + height - inset],
  ][i];
  const [x1, y1, x2, y2] = ends;
  return svgElement('line', { x1, y1, x2, y2, ...strokeOf(side) });
}
