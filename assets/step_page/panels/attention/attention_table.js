/** One head's row as a table: every key, its token, and the weight the query gave it. */

import { formatNumber } from '../../drawing/format.js';
import { plainToken } from '../../drawing/pieces.js';
import { tokenAtPosition } from '../../drawing/token_names.js';
import { withoutFirst } from '../../store/attention_data.js';

/** @param {Float32Array|null} row weights of the keys; null where there is none yet */
export function attentionTable(tokens, step, row, { layer, which, hidesFirst }) {
  const altered = hidesFirst && row ? withoutFirst(row) : null;
  return {
    caption: step ? `Attention of ${tokenAtPosition(tokens, step.kv_len - 1)}, layer ${layer}, ${which}` : 'Attention',
    columns: ['position', 'key token', 'id', 'weight', ...(altered ? ['weight, first hidden (altered)'] : [])],
    rows: Array.from(row ?? [], (value, key) => [
      key, plainToken(tokens[key]), tokens[key]?.id ?? '', formatNumber(value, 4), ...(altered ? [formatNumber(altered[key], 4)] : []),
    ]),
  };
}
