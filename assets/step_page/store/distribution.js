/**
 * The distribution of one step in one form, whether it was drawn from, is only tried out, or was tried out by the engine.
 *
 * Raw and final probability are two numbers. Both run over the whole vocabulary;
 * what is not listed is summed up as "others", never left out.
 */

import { formatCount } from '../drawing/format.js';
import { say } from '../drawing/say.js';
import { whatIf } from '../panels/next_token/sampler.js';

/** Stages in the order transformers applies them. */
export const STAGE_ORDER = ['logits', 'repetition_penalty', 'temperature', 'greedy', 'top_k', 'top_p', 'min_p'];

export const STAGE_WORDS = {
  logits: 'raw', repetition_penalty: 'penalty', temperature: 'temp', greedy: 'greedy', top_k: 'top-k', top_p: 'top-p', min_p: 'min-p',
};

/** Leaves the model's distribution alone. */
const NEUTRAL_SAMPLING = { temperature: 1, top_k: 0, top_p: 1, min_p: 0, repetition_penalty: 1 };

/** The setting that belongs to a stage: "top-k 50", "temp 0.8". */
export function stageName(name, sampling) {
  const values = {
    repetition_penalty: sampling.repetition_penalty, temperature: sampling.temperature, top_k: sampling.top_k, top_p: sampling.top_p, min_p: sampling.min_p,
  };
  if (!(name in values)) return STAGE_WORDS[name];
  return `${STAGE_WORDS[name]} ${name === 'top_k' ? formatCount(values[name]) : Number(values[name].toPrecision(3))}`;
}

/** Raw probability of every candidate of a step, by falling logit; kept with the step. */
const rawProbabilities = new WeakMap();

export function rawOf(step) {
  let raw = rawProbabilities.get(step);
  if (!raw) {
    raw = Float64Array.from(step.planes.cand_logits.data, (logit) => Math.exp(logit - step.log_sum_exp));
    rawProbabilities.set(step, raw);
  }
  return raw;
}

/** Probabilities of stage `index` from an (S, n) plane. */
function stageRow(plane, index) {
  const shown = plane.shape[1];
  return plane.data.subarray(index * shown, (index + 1) * shown);
}

/** Engine stages (of a record or of a what-if answer) as one distribution. */
function engineDistribution(kind, sampling, stages, plane) {
  return {
    kind, sampling,
    stages: stages.map(({ name, label, kept, removed_mass: removed, entropy_bits: bits }) => ({ name, label, kept, removed, bits, exact: true })),
    at: (index) => stageRow(plane, index),
  };
}

/**
 * What the step was drawn from.
 * @returns {{kind: 'drawn'|'tried'|'exact', sampling: object, stages: Array<{name, label, kept, removed, bits, exact}>,
 *   at: (index: number) => ArrayLike<number>}} `at`: probabilities after a stage, one per candidate, likeliest raw logit first
 */
export function drawnDistribution(step) {
  return engineDistribution('drawn', step.sampling, step.stages, step.planes.stage_probs);
}

/** What other settings would have made of the same scores, computed by the engine. */
export function exactDistribution(answer, sampling) {
  return engineDistribution('exact', sampling, answer.stages, answer.planes?.stage_probs ?? answer.stage_probs);
}

/** The same, computed here while a slider moves. Stages before the last are tried one by one only when asked for. */
export function triedDistribution(step, sampling) {
  const { planes } = step;
  const candidates = {
    ids: planes.cand_ids.data, logits: planes.cand_logits.data, seen: planes.cand_seen.data, logSumExp: step.log_sum_exp,
    tailCounts: planes.tail_counts.data, tailLow: step.tail.low, tailHigh: step.tail.high,
  };
  const result = whatIf(candidates, sampling);
  const stages = result.stages.map(({ name, label, kept, removedMass: removed, entropyBits: bits, exact }) => ({ name, label, kept, removed, bits, exact }));
  const at = (index) => {
    if (index === stages.length - 1) return result.rows;
    const upTo = { ...NEUTRAL_SAMPLING };
    for (const { name } of stages.slice(1, index + 1)) {
      const field = name === 'greedy' ? 'temperature' : name;
      upTo[field] = sampling[field];
    }
    return whatIf(candidates, upTo).rows;
  };
  return { kind: 'tried', sampling, stages, at };
}

/** Are two settings the same draw? */
export function sameSampling(a, b) {
  return ['temperature', 'top_k', 'top_p', 'min_p', 'repetition_penalty'].every((name) => a?.[name] === b?.[name]);
}

/** "temp 0.8 · top-k 50 · top-p 0.9", leaving out what is off. */
export function samplingWords(sampling) {
  if (sameSampling(sampling, NEUTRAL_SAMPLING)) return say('distribution.neutral');
  const words = [];
  if (sampling.repetition_penalty !== 1) words.push(stageName('repetition_penalty', sampling));
  words.push(sampling.temperature === 0 ? 'greedy' : stageName('temperature', sampling));
  if (sampling.temperature !== 0) {
    if (sampling.top_k > 0) words.push(stageName('top_k', sampling));
    if (sampling.top_p < 1) words.push(stageName('top_p', sampling));
    if (sampling.min_p > 0) words.push(stageName('min_p', sampling));
  }
  return words.join(' · ');
}
