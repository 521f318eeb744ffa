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

/** A cell of a CSV file (RFC 4180). What a spreadsheet would take for a formula is told by an apostrophe that it is none. */
export function csvCell(cell) {
  const text = cellText(cell).replace(/\r\n?/g, '\n');
  const safe = /^[=@\t]/.test(text) || (/^[+-]/.test(text) && !isNumeric(text)) ? `'${text}` : text;
  return /[",\n]/.test(safe) ? `"${safe.replaceAll('"', '""')}"` : safe;
}

/** "KV cache after step 3, layer 10" -> "kv-cache-after-step-3-layer-10.csv" */
export function csvName(caption) {
  const name = caption.toLowerCase().replace(/[^a-z0-9]+/g, '-').replace(/^-+|-+$/g, '').slice(0, 60);
  return `${name || 'table'}.csv`;
}

/** Let the browser save a file. */
export function saveFile(blob, name) {
  const address = URL.createObjectURL(blob);
  make('a', { href: address, download: name }).click();
  setTimeout(() => URL.revokeObjectURL(address), 10_000);
}

const columnLabels = (columns) => columns.map((column) => column.label ?? column);

/** A table as a CSV file, with the mark at its beginning by which spreadsheets know UTF-8. */
export function csvFile(columns, rows) {
  const lines = [columnLabels(columns), ...rows].map((row) => row.map(csvCell).join(','));
  return new Blob(['\ufeff', lines.join('\r\n')], { type: 'text/csv;charset=utf-8' });
}

/** A button that saves a table under its own name. */
function saveButton(columns, rows, caption) {
  const save = () => saveFile(csvFile(columns, rows), csvName(caption));
  return make('button.small-button.twin-save', { title: say('table_twin.save_title'), onclick: save }, icon('down', 14), say('table_twin.save'));
}

/**
 * @param {(string|{label: string})[]} columns
 * @param {(string|number|Node)[][]} rows
 * @param {string} [caption]
 * @returns {HTMLElement} a scrolling figure with a table, and buttons to copy it and to save it
 */
export function tableTwin(columns, rows, caption = '') {
  const labels = columnLabels(columns);
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
    make('div.twin-buttons', {}, copyButton(tsv), saveButton(columns, rows, caption)),
  );
}
