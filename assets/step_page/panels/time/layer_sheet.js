/**
 * One step's forward, layer by layer: the step is replayed with a clock between its layers, and nothing moves.
 *
 * No single layer is slow. All take about the same, and the head, one large product over the
 * vocabulary, takes as long as several of them.
 *
 * For tests: .layer-row[data-part]
 */

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
    make('p.layer-sum', {}, `${formatMs(inLayers)} in ${layers.length} layers, ${formatMs(head)} in the head.`),
    make('p.layer-words', {}, `Measured: best of ${replays} replays of this step, device synchronised after every layer. `
      + 'The clocks between the layers cost a little, so the sum is above the step’s own forward pass.'),
    make('ul.layer-list', {}, layerRow('embedding', 'before', before, most, total), ...each, layerRow('norm and head', 'head', head, most, total)),
  ];
}

/** Opens the sheet for a step and fills it when the replay is done. */
export async function openLayers(root, store, step) {
  const { body } = openSheet(root, { title: `Step ${step.index}, layer by layer`, name: 'layers',
    hint: 'Where the milliseconds of the forward pass go. The step is run again against the same cache; looking changes nothing.' },
  (into) => into.replaceChildren(waitLine(store, 'Replaying the step')));
  try {
    const answer = await store.send('layer_times', { step: step.index });
    body.replaceChildren(...layerList(answer));
  } catch (error) {
    body.replaceChildren(make('p.error-words', {}, error.message));
  }
}
