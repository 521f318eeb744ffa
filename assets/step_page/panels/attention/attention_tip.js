/** What the tooltip says about a weight: which key, which query read it, and how much. */

import { say } from '../../drawing/say.js';
import { formatProb } from '../../drawing/format.js';
import { tokenAtPosition } from '../../drawing/token_names.js';

/**
 * @param {{row: object|null, key: number|null} | null} at under the pointer: a row of the triangle or a bar (row null)
 * @param view {tokens, step, values: the bars' weights or null, hidesFirst: the weights are altered}
 */
export function tellWeight(tip, event, at, { tokens, step, values, hidesFirst }) {
  const { row, key } = at ?? {};
  const named = (position) => tokenAtPosition(tokens, position);
  if (!at || (!row && !values)) return tip.hide();
  const query = row ? row.position : step.kv_len - 1;
  if (row && !row.values) return tip.show(event.clientX, event.clientY, named(query), [], say('attention_tip.missing'));
  if (key === null || key === undefined) return tip.hide();
  const weight = row ? row.values[key] : values[key];
  return tip.show(event.clientX, event.clientY, say('attention_tip.key', { token: named(key) }), [
    [say('attention_tip.query'), row?.first < query ? say('attention_tip.largest', { first: named(row.first), query: named(query) }) : named(query)],
    [say('attention_tip.weight'), hidesFirst ? say('attention_tip.altered', { weight: formatProb(weight) }) : formatProb(weight)],
  ]);
}
