/**
 * The values that a lesson's text can name: fields of live records, never typed in.
 *
 * A field is {text, number}: as it is read, in the same form as on the panels, and as a number where it is one. null: it
 * is not there (yet, or on this model). The names are also those of explorer/lessons/fields.py; a test holds them together.
 */

import { formatBits, formatBytes, formatCount, formatMs, formatNumber, formatProb } from '../drawing/format.js';
import { quotedToken } from '../drawing/pieces.js';
import { drawnDistribution, rawOf } from '../store/distribution.js';
import { floorOf, timesFloor } from '../store/floor.js';
import { drawnPosition, FINISH_WORDS } from '../store/roles.js';
import { bitsOf } from '../store/surprisal.js';
import { tokensRead } from '../panels/time/prefill.js';

const MOST_LISTED = 12; // tokens of a prompt that are named one by one

const isKnown = (value) => value !== null && value !== undefined && !Number.isNaN(value);
const as = (format) => (value) => (isKnown(value) ? { text: format(value), number: value } : null);
const count = as(formatCount);
const bytes = as(formatBytes);
const prob = as(formatProb);
const bits = as(formatBits);
const ms = as(formatMs);
const plain = as((value) => formatNumber(value));
const words = (text) => (isKnown(text) && text !== '' ? { text, number: null } : null);

/** A token of the vocabulary, by its id. */
const piece = (store, id) => words(quotedToken(store.pieces.get(id)));

/** Before any stage: the `rank`-th likeliest, from 0. */
const likeliest = (step, store, rank) => {
  const { data } = step.planes.cand_ids;
  return rank < data.length ? piece(store, data[rank]) : null;
};

/** What went in: a few tokens by name. */
function fed(step, store) {
  const names = step.positions.map((position) => quotedToken(store.tokens[position]));
  return words(names.length > MOST_LISTED ? `${names.slice(0, MOST_LISTED).join(' ')} …` : names.join(' '));
}

/** Everything up to the token that this step sampled. */
function textUpTo(step, store) {
  const prompt = store.session?.prompt ?? '';
  return words(`“${`${prompt}${step.text}`.replace(/\s*\n\s*/g, ' ⏎ ')}”`);
}

const STEP_FIELDS = {
  number: (step) => count(step.index),
  token: (step, store) => words(quotedToken(store.tokens[drawnPosition(store, step.index)] ?? store.pieces.get(step.draw.token_id))),
  token_id: (step) => as(String)(step.draw.token_id),
  in: fed,
  in_count: (step) => count(step.input_ids.length),
  in_id: (step) => as(String)(step.input_ids.at(-1)),
  position: (step) => count(step.positions.at(-1)),
  kv_len: (step) => count(step.kv_len),
  kv_bytes: (step) => bytes(step.kv_bytes),
  probability: (step) => prob(step.draw.final_prob),
  raw_probability: (step) => prob(step.draw.raw_prob),
  rank: (step) => count(step.draw.raw_rank),
  u: (step) => as((u) => u.toFixed(3))(step.draw.u),
  kept: (step) => count(step.stages.at(-1).kept),
  entropy: (step) => bits(step.stages.at(-1).entropy_bits),
  raw_entropy: (step) => bits(step.stages[0].entropy_bits),
  likeliest: (step, store) => likeliest(step, store, 0),
  likeliest_probability: (step) => prob(rawOf(step)[0]),
  second: (step, store) => likeliest(step, store, 1),
  second_probability: (step) => prob(rawOf(step)[1]),
  third: (step, store) => likeliest(step, store, 2),
  third_probability: (step) => prob(rawOf(step)[2]),
  final_likeliest_probability: (step) => prob(drawnDistribution(step).at(step.stages.length - 1)[0]),
  surprisal: (step) => bits(bitsOf(step.draw.raw_prob)),
  forward_ms: (step) => ms(step.timing_ms?.forward),
  sample_ms: (step) => ms(step.timing_ms?.sample),
  total_ms: (step) => ms(step.timing_ms?.total),
  per_token_ms: (step) => ms(step.timing_ms && tokensRead(step) > 0 ? step.timing_ms.forward / tokensRead(step) : null),
  bound_ms: (step, store) => ms(floorOf(step, store.machine)?.ms),
  times_bound: (step, store) => plain(timesFloor(step, store.machine)),
  read_bytes: (step) => bytes(step.floor ? step.floor.weights + step.floor.cache : null),
  batch: (step) => count(step.batch_size),
  stop: (step) => words(step.finish_reason ? (FINISH_WORDS[step.finish_reason] ?? step.finish_reason) : ''),
  text: textUpTo,
  pending: (step) => words(step.pending.match(/../g)?.join(' ')),
  held: (step) => words(step.held ? `“${step.held}”` : ''),
};

/** Of the step that is looked at now, with the layer and the head that are. */
const LOOK_FIELDS = {
  layer: (step, store) => count(store.sel.layer),
  head: (step, store) => count(store.sel.head),
  kv_head: (step, { sel, model }) => count(Math.floor(sel.head / (model.num_heads / model.num_kv_heads))),
  most_read: (step, store, { weights }) => (weights ? words(quotedToken(store.tokens[weights.indexOf(Math.max(...weights))])) : null),
  most_read_weight: (step, store, { weights }) => (weights ? prob(Math.max(...weights)) : null),
  first_weight: (step, store, { weights }) => (weights ? prob(weights[0]) : null),
};

const MODEL_FIELDS = {
  name: (model) => words(model.name),
  layers: (model) => count(model.num_layers),
  heads: (model) => count(model.num_heads),
  kv_heads: (model) => count(model.num_kv_heads),
  head_dim: (model) => count(model.head_dim),
  vocabulary: (model) => count(model.vocab_size),
  parameters: (model) => count(model.parameters),
  weight_bytes: (model) => bytes(model.weight_bytes),
  kv_bytes_per_token: (model) => bytes(model.kv_bytes_per_token),
  context: (model) => count(model.context_limit),
  dtype: (model) => words(model.dtype),
  eos_ids: (model) => words(model.end_ids.join(', ')),
};

const RUN_FIELDS = {
  text: (store) => (store.steps.length ? textUpTo(store.steps.at(-1), store) : null),
  tokens: (store) => count(store.tokens.length),
  prompt_tokens: (store) => count(store.promptLength),
  steps: (store) => count(Math.max(0, store.newest)),
  seed: (store) => as(String)(store.settings?.seed),
  temperature: (store) => plain(store.settings?.sampling.temperature),
  top_k: (store) => count(store.settings?.sampling.top_k),
  top_p: (store) => plain(store.settings?.sampling.top_p),
  min_p: (store) => plain(store.settings?.sampling.min_p),
  penalty: (store) => plain(store.settings?.sampling.repetition_penalty),
  max_new_tokens: (store) => count(store.settings?.stop.max_new_tokens),
  branches: (store) => count(store.session?.branches?.length),
};

const GUESS_FIELDS = {
  token: ({ piece: guessed }) => words(quotedToken(guessed)),
  rank: ({ rank }) => count(rank),
  probability: ({ stages }) => prob(stages[0].prob),
};

/** Every name, for the test that holds this file and the Python one together. */
export const LESSON_FIELDS = [
  ...['step', 'prefill', 'before', 'look'].flatMap((group) => Object.keys(STEP_FIELDS).map((name) => `${group}.${name}`)),
  ...Object.entries({ look: LOOK_FIELDS, model: MODEL_FIELDS, run: RUN_FIELDS, guess: GUESS_FIELDS }).flatMap(([group, fields]) =>
    Object.keys(fields).map((name) => `${group}.${name}`),
  ),
  'machine.bandwidth',
];

/**
 * @param {string} name "step.kv_len"
 * @param {{store, at: number, guess: object|null, weights: Float32Array|null}} scene at: the scene's own step;
 *   weights: the attention row on screen
 * @returns {{text: string, number: number|null} | null}
 */
export function fieldOf(name, scene) {
  const [group, field] = name.split('.');
  const { store, at } = scene;
  if (group === 'model') return store.model ? MODEL_FIELDS[field](store.model) : null;
  if (group === 'run') return RUN_FIELDS[field](store);
  if (group === 'guess') return scene.guess ? GUESS_FIELDS[field](scene.guess) : null;
  if (group === 'machine') return words(store.machine ? `${formatBytes(store.machine.bytes_per_s)}/s` : '');
  const step = { step: store.steps[at], before: store.steps[at - 1], prefill: store.steps[0], look: store.selected }[group];
  if (!step) return null;
  return (group === 'look' && LOOK_FIELDS[field] ? LOOK_FIELDS[field] : STEP_FIELDS[field])(step, store, scene);
}
