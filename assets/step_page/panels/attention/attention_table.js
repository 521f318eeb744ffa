/** One head's row as a table: every key, its token, and the weight the query gave it. */

import { say } from '../../drawing/say.js';
import { formatNumber } from '../../drawing/format.js';
import { plainToken } from '../../drawing/pieces.js';
import { tokenAtPosition } from '../../drawing/token_names.js';
import { withoutFirst } from '../../store/attention_data.js';

/** @param {Float32Array|null} row weights of the keys; null where there is none yet */
export function attentionTable(tokens, step, row, { layer, which, hidesFirst }) {
  const altered = hidesFirst && row ? withoutFirst(row) : null;
  return {
    caption: step ? say('attention_table.caption', { token: tokenAtPosition(tokens, step.kv_len - 1), layer, which }) : say('attention_table.tab'),
    columns: ['position', say('attention_table.key'), 'id', 'weight', ...(altered ? [say('attention_table.altered_weight')] : [])],
    rows: Array.from(row ?? [], (value, key) => [
      key, plainToken(tokens[key]), tokens[key]?.id ?? '', formatNumber(value, 4), ...(altered ? [formatNumber(altered[key], 4)] : []),
    ]),
  };
}
