/**
 * Elements built by hand: text only ever goes in as text, so a token that spells markup stays a token, and a browser that
 * translates the page leaves it alone. Our sentences put a token between “ and ”: a sentence with one stays as it is.
 */

const SVG_NS = 'http://www.w3.org/2000/svg';

/**
 * make('button.primary', {title: 'x', onclick: f, 'aria-label': 'y', data: {step: 3}}, 'text', childNode)
 * A value of null, undefined or false leaves a property out.
 */
export function make(spec, props = {}, ...children) {
  const [tag, ...classes] = spec.split('.');
  const node = document.createElement(tag || 'div');
  if (classes.length) node.className = classes.join(' ');
  if (classes.includes('token-text')) keepFromTranslators(node);
  if (tag === 'button') node.type = 'button'; // unless props say submit
  for (const [name, value] of Object.entries(props)) {
    if (value === null || value === undefined || value === false) continue;
    if (name === 'data') Object.assign(node.dataset, value);
    else if (name.startsWith('on')) node.addEventListener(name.slice(2), value);
    else if (name.includes('-') || name === 'role' || name === 'for') node.setAttribute(name, value);
    else node[name] = value;
  }
  node.append(...children.filter((child) => child !== null && child !== undefined && child !== false));
  return node;
}

/** Text in here is data: a translator must not touch it. */
export function keepFromTranslators(node, isData = true) {
  node.translate = !isData;
  node.classList.toggle('notranslate', isData);
  return node;
}

/** Set text only where it differs, so that live regions and selections are left alone. */
export function setText(node, text) {
  if (node.textContent === text) return;
  keepFromTranslators(node, String(text).includes('“'));
  node.textContent = text;
}

/** Replace children only when their number or identity differs. */
export function setChildren(node, children) {
  const now = node.childNodes;
  if (now.length === children.length && children.every((child, i) => now[i] === child)) return;
  node.replaceChildren(...children);
}

/** Outlines on a 20 x 20 grid; "f:" paths are filled, the others are strokes. */
const ICON_PATHS = {
  first: ['M5 4.5v11', 'f:M15.5 4.8v10.4L7.8 10z'],
  back: ['f:M13.8 4.6v10.8L5.6 10z'],
  forward: ['f:M6.2 4.6v10.8L14.4 10z'],
  last: ['M15 4.5v11', 'f:M4.5 4.8v10.4L12.2 10z'],
  play: ['f:M6 4.2v11.6L15.2 10z'],
  pause: ['f:M5.5 4.5h3.2v11H5.5z', 'f:M11.3 4.5h3.2v11h-3.2z'],
  step: ['M4.5 10h8.5', 'M9.6 5.8 13.8 10l-4.2 4.2', 'M16.2 5v10'],
  rewind: ['M4.2 7.2h7.6a4.4 4.4 0 0 1 0 8.8H7', 'M7.4 3.8 4 7.2l3.4 3.4'],
  fork: ['M5.5 3.5v13', 'M5.5 11c0-3.4 8.5-1.6 8.5-5.6', 'M11.6 7.4 14 4.8l2.4 2.6'],
  force: ['M10 3.5v8.2', 'M6.6 8.6 10 12l3.4-3.4', 'M4.5 16h11'],
  reset: ['M15.6 10a5.6 5.6 0 1 1-1.7-4', 'M14.4 2.8v3.6h-3.6'],
  branches: ['M4 5h12', 'M4 10h12', 'M4 15h12'],
  check: ['M4.5 10.6 8.4 14.4 15.6 6'],
  cross: ['M5.5 5.5l9 9', 'M14.5 5.5l-9 9'],
  alert: ['M10 5.5v5.6', 'M10 14.2v.1'],
  dice: [
    'M4.5 4.5h11v11h-11z',
    'f:M7 6.7a.9.9 0 1 0 .01 0z',
    'f:M13 11.5a.9.9 0 1 0 .01 0z',
    'f:M10 9.1a.9.9 0 1 0 .01 0z',
  ],
  save: ['M10 3.5v8.4', 'M6.5 8.6 10 12l3.5-3.4', 'M4 13.6v2.9h12v-2.9'],
  down: ['M5.5 8 10 12.5 14.5 8'],
  tune: ['M4 6.5h6', 'M14 6.5h2', 'M12 4.5v4', 'M4 13.5h2', 'M10 13.5h6', 'M8 11.5v4'],
  table: ['M3.5 4.5h13v11h-13z', 'M3.5 8.4h13', 'M8.4 8.4v7.1'],
  lead: ['f:M10 4.2a2 2 0 1 0 .01 0z', 'M10 8.4v4', 'M5.2 4a7 7 0 0 0 0 8.6', 'M14.8 4a7 7 0 0 1 0 8.6', 'M7 16h6'],
  keep: ['M4.5 4.5h8.2l2.8 2.8v8.2h-11z', 'M7 4.5v3.6h5V4.5', 'M7 15.5v-4h6v4'],
  open: ['M3.5 15.5v-11h5l1.6 2h6.4v9z'],
  copy: ['M7 7h8.5v8.5H7z', 'M12.8 4.5H4.5v8.3'],
  link: [
    'M8.4 11.6l3.2-3.2',
    'M9.2 6l1.7-1.7a3.2 3.2 0 0 1 4.5 4.5L13.7 10.5',
    'M10.8 14l-1.7 1.7a3.2 3.2 0 0 1-4.5-4.5L6.3 9.5',
  ],
  screen: ['M3.5 4.5h13v8.6h-13z', 'M10 13.1v3', 'M7 16.1h6'],
  slow: ['f:M3.4 8.6a1.4 1.4 0 1 0 .01 0z', 'f:M8 8.6a1.4 1.4 0 1 0 .01 0z', 'M11.4 10h5', 'M13.6 6.6 17 10l-3.4 3.4'],
  arrow: ['M3.5 10h12', 'M11.8 6.2 15.6 10l-3.8 3.8'],
};

/** A decorative drawing from the table above; the button around it carries the label. */
export function icon(name, size = 18) {
  const svg = document.createElementNS(SVG_NS, 'svg');
  for (const [key, value] of Object.entries({
    viewBox: '0 0 20 20',
    width: size,
    height: size,
    class: 'icon',
    'aria-hidden': 'true',
  })) {
    svg.setAttribute(key, value);
  }
  for (const path of ICON_PATHS[name]) {
    const node = document.createElementNS(SVG_NS, 'path');
    node.setAttribute('d', path.replace('f:', ''));
    node.setAttribute('class', path.startsWith('f:') ? 'fill' : 'stroke');
    svg.append(node);
  }
  return svg;
}
