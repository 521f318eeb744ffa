/**
 * The page's colour roles as numbers, for canvases.
 *
 * A custom property read with getComputedStyle is only text: it may hold `color-mix(...)`. Each role is
 * therefore resolved by the browser on a probe element and read back as a pixel.
 */

import { make } from './dom.js';

const PALETTE_ROLES = ['bg', 'card', 'line', 'text', 'mute', 'faint', 'accent', 'prompt', 'gen', 'forced', 'template',
  'k', 'v', 'bad', 'grid'];
const SMALLEST_LABEL = 12;
const palettes = new WeakMap();
let palettePixel = null;

/** One colour as {r, g, b, css}. */
function rgbColour(r, g, b) {
  return { r, g, b, css: `rgb(${r},${g},${b})` };
}

function resolveColour(text) {
  palettePixel ??= Object.assign(document.createElement('canvas'), { width: 1, height: 1 })
    .getContext('2d', { willReadFrequently: true });
  palettePixel.clearRect(0, 0, 1, 1);
  palettePixel.fillStyle = text;
  palettePixel.fillRect(0, 0, 1, 1);
  const [r, g, b] = palettePixel.getImageData(0, 0, 1, 1).data;
  return rgbColour(r, g, b);
}

/**
 * The colours in force at `root`: {accent: {r, g, b, css}, ..., font, mono}, and the size of all text on its canvases, in
 * pixels: {label}. It follows the type of the panel by the share that --label names. Cached until `forgetPalette`.
 * @param {Element} root
 */
export function paletteOf(root) {
  const known = palettes.get(root);
  if (known) return known;
  const probe = document.createElement('span');
  probe.hidden = true;
  root.append(probe);
  const palette = {};
  for (const role of PALETTE_ROLES) {
    probe.style.color = `var(--${role})`;
    palette[role] = resolveColour(getComputedStyle(probe).color);
  }
  probe.remove();
  const style = getComputedStyle(root);
  palette.label = Math.max(SMALLEST_LABEL, parseFloat(style.fontSize) * parseFloat(style.getPropertyValue('--label') || 1));
  palette.font = style.fontFamily;
  palette.mono = style.getPropertyValue('--mono').trim() || 'ui-monospace, "Source Code Pro", monospace';
  palettes.set(root, palette);
  return palette;
}

/** Drop what is known about `root`: the theme or the type size changed. */
export function forgetPalette(root) {
  palettes.delete(root);
}

/** A colour `t` of the way from `a` to `b`. */
export function mixColour(a, b, t) {
  const at = (x, y) => Math.round(x + (y - x) * t);
  return rgbColour(at(a.r, b.r), at(a.g, b.g), at(a.b, b.b));
}

/** A colour as one little-endian RGBA pixel, as Raster takes it. */
export function pixelOf(colour) {
  return ((255 << 24) | (colour.b << 16) | (colour.g << 8) | colour.r) >>> 0;
}

/** 256 pixels from `low` to `high`. */
export function colourRamp(low, high) {
  return Uint32Array.from({ length: 256 }, (_, i) => pixelOf(mixColour(low, high, i / 255)));
}

/** The entry of a ramp for a value from 0 to 1; anything outside is clamped. */
export function rampAt(ramp, value) {
  return ramp[value <= 0 ? 0 : value >= 1 ? 255 : (value * 255 + 0.5) | 0];
}

/** Streamlit's theme, by the lightness of its background. */
export function themeOf(element) {
  const probe = make('span', { style: 'color: var(--st-background-color, #0d1015); display: none' });
  element.append(probe);
  const [red, green, blue] = getComputedStyle(probe)
    .color.match(/[\d.]+/g)
    .map(Number);
  probe.remove();
  return 0.299 * red + 0.587 * green + 0.114 * blue > 127 ? 'light' : 'dark';
}
