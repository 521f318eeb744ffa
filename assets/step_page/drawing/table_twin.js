/**
 * The table behind a picture: the same numbers for screen readers, for copying and for people who want to check.
 */

import { say } from './say.js';
import { make, icon, keepFromTranslators } from './dom.js';

/** Copy text; also on plain http, where browsers offer no clipboard. */
export async function copyText(text, near) {
  if (navigator.clipboard && window.isSecureContext) return navigator.clipboard.writeText(text);
  const area = make('textarea', { value: text, readOnly: true, style: 'position:fixed;opacity:0' });
  near.append(area);
  area.select();
  document.execCommand('copy');
  area.remove();
  return undefined;
}

/** A button that copies what `text()` returns and says so. */
export function copyButton(text, label = say('table_twin.copy')) {
  const words = make('span', {}, label);
  const button = make('button.small-button', { title: say('table_twin.copy_title') }, icon('copy', 14), words);
  button.addEventListener('click', async () => {
    await copyText(text(), button.parentElement);
    words.textContent = say('table_twin.copied');
    setTimeout(() => (words.textContent = label), 1500);
  });
  return button;
}

const cellText = (cell) => (cell instanceof Node ? cell.textContent : String(cell ?? ''));
const isNumeric = (text) => /^(?=.*\d)[<>~+−-]?[\d.,]+(e-?\d+)?\s?(%|[a-zA-Z]+)?$/.test(text);

/** Tabs and line ends inside a cell would break the copy into more cells. */
const tsvCell = (cell) => cellText(cell).replace(/[\t\r\n]+/g, ' ');

/**
 * @param {(string|{label: string})[]} columns
 * @param {(string|number|Node)[][]} rows
 * @param {string} [caption]
 * @returns {HTMLElement} a scrolling figure with a table and a copy button
 */
export function tableTwin(columns, rows, caption = '') {
  const labels = columns.map((column) => column.label ?? column);
  const head = make('tr', {}, ...labels.map((label) => make('th', { scope: 'col' }, label)));
  const body = rows.map((row) =>
    make(
      'tr',
      {},
      ...row.map((cell) => {
        const node = make('td', {}, cell instanceof Node ? cell : cellText(cell));
        if (isNumeric(cellText(cell))) node.className = 'number';
        return node;
      }),
    ),
  );
  const table = make(
    'table.twin',
    {},
    caption ? keepFromTranslators(make('caption', {}, caption), caption.includes('“')) : null,
    make('thead', {}, head),
    keepFromTranslators(make('tbody', {}, ...body)),
  );
  const tsv = () => [labels, ...rows].map((row) => row.map(tsvCell).join('\t')).join('\n');
  return make(
    'figure.twin-figure',
    {},
    make('div.twin-scroll', { tabIndex: 0, role: 'region', 'aria-label': caption || say('table_twin.table') }, table),
    copyButton(tsv),
  );
}
