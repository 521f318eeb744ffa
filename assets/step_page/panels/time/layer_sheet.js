/**
 * One step's forward, layer by layer: the step is replayed with a clock between its layers, and nothing moves.
 *
 * No single layer is slow. All take about the same, and the head, one large product over the
 * vocabulary, takes as long as several of them.
 *
 * For tests: .layer-row[data-part]
 */

import { say } from '../../drawing/say.js';
import { make } from '../../drawing/dom.js';
import { waitLine } from '../../controls/wait_line.js';
import { formatMs, formatShare } from '../../drawing/format.js';
import { openSheet } from '../../drawing/overlay.js';

function layerRow(name, part, ms, most, total) {
  const bar = make('i', { style: `width:${((100 * ms) / most).toFixed(2)}%` });
  return make('li.layer-row', { data: { part } }, make('span', {}, name), make('span.layer-bar', {}, bar),
    make('b', {}, formatMs(ms)), make('small', {}, formatShare(ms / total)));
}

function layerList({ before, layers, head, replays }) {
  const total = before + head + layers.reduce((sum, ms) => sum + ms, 0);
  const most = Math.max(before, head, ...layers);
  const each = layers.map((ms, i) => layerRow(`layer ${i}`, 'layer', ms, most, total));
  const inLayers = layers.reduce((sum, ms) => sum + ms, 0);
  return [
    make('p.layer-sum', {}, say('layer_sheet.sum', { in_all: formatMs(inLayers), layers: layers.length, head: formatMs(head) })),
    make('p.layer-words', {}, say('layer_sheet.measured', { replays })),
    make('ul.layer-list', {}, layerRow('embedding', 'before', before, most, total), ...each, layerRow(say('layer_sheet.head'), 'head', head, most, total)),
  ];
}

/** Opens the sheet for a step and fills it when the replay is done. */
export async function openLayers(root, store, step) {
  const { body } = openSheet(root, { title: say('layer_sheet.heading', { step: step.index }), name: 'layers',
    hint: say('layer_sheet.hint') },
  (into) => into.replaceChildren(waitLine(store, say('layer_sheet.replaying'))));
  try {
    const answer = await store.send('layer_times', { step: step.index });
    body.replaceChildren(...layerList(answer));
  } catch (error) {
    body.replaceChildren(make('p.error-words', {}, error.message));
  }
}
