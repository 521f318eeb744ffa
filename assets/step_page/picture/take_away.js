/**
 * The button that takes a picture away, and its menu: PNG, SVG, and CSV where there is a table behind the picture.
 *
 * Everything is made in the browser. Whoever holds the page says once what a picture is of (`tellSource`); the button asks
 * the nearest such place above it.
 *
 * For tests: button.take-away[aria-expanded], .take-menu [role=menuitem][data-kind], .take-said
 */

import { icon, make, setText } from '../drawing/dom.js';
import { say } from '../drawing/say.js';
import { csvFile, saveFile } from '../drawing/table_twin.js';
import { pngFile, svgFile, takePicture } from './picture_file.js';

const pictureSources = new WeakMap();
const MENU_MARGIN = 6;

/** @param {(name: string) => {words: string, suffix?: string}} source what a picture below `root` is of, for its last line and its name */
export function tellSource(root, source) {
  pictureSources.set(root, source);
}

function sourceOf(node, name) {
  for (let up = node; up; up = up.parentElement) if (pictureSources.has(up)) return pictureSources.get(up)(name);
  return { words: document.title.includes(say('picture.loupe')) ? document.title : say('picture.loupe') }; // a lab's tab has its name
}

/** ("next token", "step-5", "svg") -> "loupe-next-token-step-5.svg" */
export function pictureName(name, suffix, kind) {
  const words = ['loupe', name, suffix].filter(Boolean).join('-').toLowerCase();
  return `${words.replace(/[^a-z0-9]+/g, '-').replace(/^-+|-+$/g, '').slice(0, 80)}.${kind}`;
}

/**
 * @param {{name: string, title: string, picture: () => {root: Element, parts: Element[], title?: string, note?: string, leaves?: string},
 *   table?: () => {columns: string[], rows: any[][]}, prepare?: () => () => void}} what
 *   name: for the file; prepare: puts the picture on screen where something else stands, and returns what puts that back
 * @returns {HTMLElement} the button, with its menu inside the same element
 */
export function takeAway({ name, title, picture, table, prepare = () => () => {} }) {
  const said = make('p.take-said', { role: 'status' });
  const menu = make('div.take-menu', { role: 'menu', popover: 'auto', 'aria-label': say('picture.menu', { title }) });
  const button = make('button.take-away', { 'aria-haspopup': 'menu', 'aria-expanded': 'false', 'aria-label': say('picture.button', { title }), title: say('picture.button_title') }, icon('save', 14));
  const node = make('span.take-box', {}, button, menu);
  const save = async (kind) => {
    setText(said, say('picture.working'));
    try {
      const { words, suffix } = sourceOf(node, name);
      const file = pictureName(name, suffix, kind);
      if (kind === 'csv') {
        const { columns, rows } = table();
        saveFile(csvFile(columns, rows), file);
      } else saveFile(await drawn(kind, words), file);
      close();
    } catch (error) {
      setText(said, say('picture.failed', { kind: kind.toUpperCase(), why: error.message || error.name }));
    }
  };
  const drawn = async (kind, source) => {
    const putBack = prepare();
    let waiting = null;
    try {
      waiting = takePicture({ title, source, ...picture() });
    } finally {
      putBack();
    }
    const made = await waiting;
    return kind === 'svg' ? svgFile(made) : pngFile(made);
  };
  const kinds = [['png', say('picture.png')], ['svg', say('picture.svg')], ...(table ? [['csv', say('picture.csv')]] : [])];
  const items = kinds.map(([kind, words]) => make('button.take-item', { role: 'menuitem', tabIndex: -1, data: { kind }, onclick: () => save(kind) }, make('b', {}, kind.toUpperCase()), words));
  menu.append(...items, said);
  const close = () => menu.matches(':popover-open') && menu.hidePopover();
  openByButton(button, menu, items, said);
  return node;
}

/** Opens with a press, closes with the next, with Esc and with a press elsewhere. Opened by keyboard, the keys are in it. */
function openByButton(button, menu, items, said) {
  let wasOpen = false; // the press on the button that closes an open menu must not open it again
  button.addEventListener('pointerdown', () => (wasOpen = menu.matches(':popover-open')));
  button.addEventListener('click', (event) => {
    const isKey = event.detail === 0;
    if (isKey ? menu.matches(':popover-open') : wasOpen) return menu.matches(':popover-open') && menu.hidePopover();
    setText(said, '');
    menu.showPopover();
    placeMenu(button, menu);
    if (isKey) items[0].focus({ preventScroll: true });
    return undefined;
  });
  menu.addEventListener('toggle', ({ newState }) => button.setAttribute('aria-expanded', String(newState === 'open')));
  menu.addEventListener('keydown', (event) => {
    const at = items.indexOf(menu.getRootNode().activeElement);
    const to = { ArrowDown: at + 1, ArrowUp: at - 1, Home: 0, End: items.length - 1 }[event.key];
    if (event.key !== 'Tab') event.stopPropagation(); // the page's keys rest meanwhile
    if (event.key === 'Tab' || event.key === 'Escape') menu.hidePopover();
    if (event.key === 'Escape') button.focus({ preventScroll: true });
    if (to !== undefined) items[(to + items.length) % items.length].focus({ preventScroll: true });
    if (to !== undefined || event.key === 'Escape') event.preventDefault();
  });
}

/** Below the button, its right edges in line, and inside the window. */
function placeMenu(button, menu) {
  const { right, bottom, top } = button.getBoundingClientRect();
  const { width, height } = menu.getBoundingClientRect();
  const below = bottom + MENU_MARGIN;
  menu.style.left = `${Math.max(MENU_MARGIN, Math.min(right - width, innerWidth - width - MENU_MARGIN))}px`;
  menu.style.top = `${below + height > innerHeight ? Math.max(MENU_MARGIN, top - height - MENU_MARGIN) : below}px`;
}
