/**
 * What the model would have said after each prompt token: the rows of logits that generation throws away.
 *
 * For tests: .sheet-prompt-rows table
 */

import { say } from '../../drawing/say.js';
import { make } from '../../drawing/dom.js';
import { waitLine } from '../../controls/wait_line.js';
import { openSheet } from '../../drawing/overlay.js';
import { tableTwin } from '../../drawing/table_twin.js';
import { renderToken, plainToken } from '../../drawing/pieces.js';
import { formatProb } from '../../drawing/format.js';

const GUESSES = 4;
const tokenCell = (piece) => renderToken(make('span'), piece);

function promptRowCells(store, row) {
  const guesses = row.top.slice(0, GUESSES).map(([id, p]) => `${plainToken(store.pieces.get(id))} ${formatProb(p)}`);
  const next = row.actual_next_id === null ? '–' : tokenCell(store.pieces.get(row.actual_next_id));
  return [row.position, tokenCell(store.tokens[row.position]), next, formatProb(row.actual_next_prob), ...guesses];
}

export function openPromptRows(root, store) {
  const sheet = openSheet(
    root,
    {
      title: say('prompt_rows.heading'),
      name: 'prompt-rows',
      wide: true,
      hint: say('prompt_rows.hint'),
    },
    (body) => body.append(waitLine(store, say('prompt_rows.reading'))),
  );
  store
    .send('prompt_rows')
    .then((answer) => {
      for (const [id, piece] of Object.entries(answer.pieces ?? {})) store.pieces.set(Number(id), piece);
      const columns = ['position', 'after', say('prompt_rows.came_next'), say('prompt_rows.probability'), '1st', '2nd', '3rd', '4th'];
      const rows = (answer.rows ?? answer).map((row) => promptRowCells(store, row));
      sheet.body.replaceChildren(tableTwin(columns, rows, say('prompt_rows.caption')));
    })
    .catch((error) => sheet.body.replaceChildren(make('p.error-words', {}, error.message)));
}
