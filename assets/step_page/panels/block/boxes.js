/**
 * The boxes of one decoder layer, from the numbers of a step: pure, so that a test can read them.
 *
 * A box is {name, term, shape, norms: [[sign, number]], sum?: {added, of}}; `name` is what the field calls it.
 */

import { formatCount, formatNumber } from '../../drawing/format.js';
import { say } from '../../drawing/say.js';

const box = (name, term, shape, norms, more = {}) => ({ name, term, shape, norms: norms.filter(([, norm]) => norm !== null), ...more });
const one = (norm) => [['', norm]];
const width = (numbers) => say('block.numbers', { n: formatCount(numbers) });

/** 12.34 -> "12.3" */
export const normText = (norm) => formatNumber(norm);

/** The boxes before the first layer and after the last. */
export function endBoxes(blocks) {
  const { hidden, vocabulary, layers, norm_name: norm, final_norm: final, logits } = blocks;
  const table = `${formatCount(vocabulary)} × ${formatCount(hidden)}`;
  const taken = layers.some((layer) => layer.is_rotated) ? say('block.embedding_row', { table }) : say('block.embedding_position', { table });
  return {
    before: [box(say('block.embedding'), 'embedding', taken, one(layers[0].entered))],
    after: [
      ...(final === null ? [] : [box(say('block.final_norm', { norm }), 'RMSNorm', width(hidden), one(final))]),
      box(say('block.head'), 'LM head', say('block.matrix', { from: formatCount(hidden), to: formatCount(vocabulary) }), one(logits)),
    ],
  };
}

/**
 * The two branches of a layer.
 * @returns {{attention: object[], mlp: object[], isParallel: boolean}}
 */
export function blockBoxes(blocks, index, keys) {
  const layer = blocks.layers[index];
  const isOpen = !blocks.closed;
  const isParallel = isOpen && layer.middle === null;
  const entered = residual(say('block.residual_in'), blocks.hidden, layer.entered);
  const attention = [entered, ...norm(blocks, layer.first_norm), ...attentionBoxes(blocks, layer, keys)];
  const mlp = isOpen ? mlpBoxes(blocks, layer) : [];
  if (isOpen && !isParallel) attention.push(sum(blocks.hidden, layer.middle, layer.attention_added, layer.entered));
  if (isParallel) mlp.unshift(entered);
  mlp.push(isOpen
    ? sum(blocks.hidden, layer.left, layer.mlp_added, layer.middle ?? layer.entered, isParallel ? layer.attention_added : null)
    : residual(say('block.residual_out'), blocks.hidden, layer.left));
  return { attention, mlp, isParallel };
}

const residual = (name, hidden, norm) => box(name, 'residual stream', width(hidden), one(norm), { isResidual: true });
const norm = (blocks, value) => (value === null ? [] : [box(blocks.norm_name, 'RMSNorm', width(blocks.hidden), one(value))]);

/** `both`: what attention added, where both branches are added at once. */
function sum(hidden, after, added, of, both = null) {
  return box(say('block.sum'), 'residual stream', width(hidden), one(after), { isResidual: true, sum: { added, of, both } });
}

function attentionBoxes(blocks, layer, keys) {
  const [queries, kvHeads, wide, valueWide] = layer.heads;
  const shapes = say('block.qkv_shapes', { q: `${queries} × ${wide}`, k: `${kvHeads} × ${wide}`, v: `${kvHeads} × ${valueWide}` });
  const shared = queries > kvHeads ? say('block.grouped', { n: queries / kvHeads }) : '';
  const turned = [['q', layer.query], ['k', layer.key]];
  const unturned = !layer.is_rotated && blocks.layers.some((other) => other.is_rotated) ? say('block.not_rotated') : '';
  const at = keys > 1 ? say('block.rotated', { position: formatCount(keys - 1) }) : say('block.rotated_first');
  const read = layer.keys_read < keys ? say('block.keys_window', { n: formatCount(layer.keys_read), all: formatCount(keys) }) : say('block.keys', { n: formatCount(layer.keys_read) });
  return [
    box('q k v', 'q k v', [shapes, shared, unturned].filter(Boolean).join(' · '), layer.is_rotated ? [['v', layer.value]] : [...turned, ['v', layer.value]]),
    ...(layer.is_rotated ? [box('RoPE', 'RoPE', at, turned)] : []),
    box(say('block.attention'), 'attention', say('block.heads_read', { heads: queries, read }), one(layer.attended)),
    ...(layer.projected === null ? [] : [box(say('block.projection'), 'output projection', say('block.matrix', { from: formatCount(queries * valueWide), to: formatCount(blocks.hidden) }), one(layer.projected))]),
    ...norm(blocks, layer.attention_norm),
  ];
}

function mlpBoxes(blocks, layer) {
  const before = norm(blocks, layer.second_norm);
  const after = norm(blocks, layer.mlp_norm);
  const matrices = layer.matrices.map(([name, from, to, gave]) => ({ name: name.replace('_proj', ''), gave, shape: say('block.matrix', { from: formatCount(from), to: formatCount(to) }) }));
  if (layer.has_experts || matrices.length < 2 || layer.inner === null) {
    const { count, active } = blocks.experts ?? {};
    const words = !layer.has_experts ? '' : count ? say('block.experts', { count, active }) : say('block.some_experts');
    return [...before, box('MLP', 'MLP', words, one(layer.mlp)), ...after];
  }
  const down = matrices.at(-1);
  const ups = matrices.slice(0, -1);
  return [
    ...before,
    box(say('block.mlp_up', { names: ups.map(({ name }) => name).join(', ') }), 'MLP', ups.length > 1 && ups.every(({ shape }) => shape === ups[0].shape) ? say('block.each', { shape: ups[0].shape }) : ups.map(({ shape }) => shape).join(', '), ups.map(({ name, gave }) => [ups.length > 1 ? name : '', gave])),
    box(say('block.activation'), 'activation', width(layer.matrices.at(-1)[1]), one(layer.inner)),
    box(say('block.mlp_down', { name: down.name }), 'MLP', down.shape, one(layer.mlp)),
    ...after,
  ];
}

/** All layers as a table. */
export function blockTable(blocks) {
  const cell = (value) => (value === null ? '' : normText(value));
  return {
    columns: [say('block.column_layer'), say('block.residual_in'), say('block.column_attention'), say('block.column_middle'), say('block.column_mlp'), say('block.residual_out')],
    rows: blocks.layers.map((layer, i) => [i, ...['entered', 'attention_added', 'middle', 'mlp_added', 'left'].map((name) => cell(layer[name]))]),
  };
}
