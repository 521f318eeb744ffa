/**
 * What every data panel has: a title with a "?", a note beside it, a sentence that says what one sees, small controls, a
 * body, a foot, a table in their place on request, a way to take each of them away, and what to do while it is empty.
 */

import { icon, make, setText } from './dom.js';
import { whatIs } from './explain.js';
import { say } from './say.js';
import { tableTwin } from './table_twin.js';
import { takeAway } from '../picture/take_away.js';

/**
 * @param {HTMLElement} root the panel's own, empty element
 * @param {{title: string, name: string, says: string, term: string, empty: string,
 *   table: () => {caption: string, columns: string[], rows: any[][]}}} options
 *   says: what one sees, in a sentence; term: of the glossary; empty: what to do to see something here; table: the numbers
 * @returns {{note: (text: string) => void, aside: (node: Node) => void, bar: HTMLElement, body: HTMLElement, foot: HTMLElement,
 *   showEmpty: (isEmpty: boolean) => void, refreshTable: () => void}}
 */
export function panelFrame(root, { title, name, says, term, empty, table }) {
  root.classList.add('lp-panel', `lp-${name}`);
  const asides = [];
  const note = make('span.lp-note');
  const bar = make('div.lp-bar');
  const body = make('div.lp-body');
  const foot = make('div.lp-foot');
  const twin = make('div.lp-twin');
  const button = make('button.lp-toggle.lp-table', { 'aria-pressed': 'false', 'aria-label': say('panel.table'), title: say('panel.table_title') },
    icon('table', 14), make('span', {}, say('panel.table')));
  const refreshTable = () => {
    if (!root.classList.contains('lp-as-table')) return;
    const { columns, rows, caption } = table();
    const top = twin.querySelector('.twin-scroll')?.scrollTop ?? 0;
    twin.replaceChildren(tableTwin(columns, rows, caption));
    twin.querySelector('.twin-scroll').scrollTop = top;
  };
  button.addEventListener('click', () => {
    const on = root.classList.toggle('lp-as-table');
    button.setAttribute('aria-pressed', String(on));
    refreshTable();
  });
  const heading = make('h2.lp-title', {}, title);
  const save = takeAway({
    name, title, table, prepare: () => withoutTable(root),
    picture: () => ({ root, parts: [body, foot], note: [note, ...asides.flatMap((node) => [...node.children])].map((node) => node.textContent).filter(Boolean).join(' · '), leaves: CONTROLS }),
  });
  const head = make('div.lp-head', {}, heading, note, button, save);
  root.replaceChildren(head, make('p.lp-says', {}, says), make('p.lp-empty', {}, empty), bar, body, foot, twin);
  heading.after(whatIs(root, term) ?? '');
  return {
    bar, body, foot, refreshTable,
    aside: (node) => asides.push(head.insertBefore(node, button)),
    note: (text) => {
      setText(note, text);
      note.title = text;
    },
    showEmpty: (isEmpty) => root.classList.toggle('lp-is-empty', isEmpty),
  };
}

/** What answers to a press and shows no data is left out of a picture. */
const CONTROLS = '.lp-toggle, .lp-segments, .lp-ask, .lp-ask-said, .lp-confirm, .lp-trials, .lp-row-pin';

/** The picture in place of the table, for as long as it takes to draw it. @returns {() => void} the table again */
function withoutTable(root) {
  const wasTable = root.classList.contains('lp-as-table');
  root.classList.remove('lp-as-table');
  return () => root.classList.toggle('lp-as-table', wasTable);
}

/**
 * A row of small buttons of which one is on.
 * @param {string} label what is chosen, for screen readers
 * @param {Array<[string, string, string?]>} choices [value, text, longer explanation]
 * @returns {{node: HTMLElement, set: (value: string) => void}}
 */
export function segmentedControl(label, choices, value, onChange) {
  const buttons = new Map();
  const node = make('div.lp-segments', { role: 'group', 'aria-label': label });
  const set = (chosen) => {
    for (const [name, button] of buttons) button.setAttribute('aria-pressed', String(name === chosen));
  };
  for (const [name, text, title] of choices) {
    const button = make('button.lp-segment', { title: title ?? null, onclick: () => { set(name); onChange(name); } }, text);
    buttons.set(name, button);
    node.append(button);
  }
  set(value);
  return { node, set };
}

/** A small button that is either on or off. */
export function toggleButton(text, title, onChange) {
  const button = make('button.lp-toggle', { title, 'aria-pressed': 'false' }, text);
  button.addEventListener('click', () => {
    const on = button.getAttribute('aria-pressed') !== 'true';
    button.setAttribute('aria-pressed', String(on));
    onChange(on);
  });
  return button;
}
