/**
 * The stages of sampling in the browser, so that dragging a slider needs no request.
 *
 * The engine's own numbers stay the truth; this is what other settings would make of the same scores. A record
 * keeps the N likeliest logits exactly and the rest of the vocabulary as a histogram, so a result is exact where
 * the cut falls inside the N, and an estimate (`exact: false`) where the histogram had to stand in.
 *
 * Scores are rounded to float32 after each stage, as the engine does; every sum is a double.
 */

import { samplerFloat32, samplerKept, samplerMax, samplerSum } from './sampler_stages.js';
import { samplerGreedy, samplerPenalise, samplerTemper } from './sampler_stages.js';
import { samplerMinP, samplerTopK, samplerTopP } from './sampler_stages.js';

/**
 * @typedef {Object} SamplerCandidates
 * @property {Int32Array} ids            (N) token ids by falling raw logit
 * @property {Float32Array} logits       (N)
 * @property {Uint8Array} seen           (N) 1 where the repetition penalty acts
 * @property {number} logSumExp          over the whole vocabulary
 * @property {Int32Array} tailCounts     (B) tokens per equal bin, outside the candidates
 * @property {number} tailLow            lower edge of the first bin
 * @property {number} tailHigh           upper edge of the last bin: the highest logit outside the candidates
 */

/**
 * @typedef {Object} SamplerParams
 * @property {number} temperature
 * @property {number} top_k
 * @property {number} top_p
 * @property {number} min_p
 * @property {number} repetition_penalty
 */

/**
 * What `params` would make of one step's scores.
 *
 * @param {SamplerCandidates} candidates
 * @param {SamplerParams} params
 * @returns {{stages: {name: string, label: string, kept: number, removedMass: number, entropyBits: number,
 *   exact: boolean, rows: Float64Array}[], rows: Float64Array, tailProb: number, keptBeyond: number, exact: boolean}}
 *   rows: (N) probability per candidate, 0 where cut, after a stage and at the end; tailProb, keptBeyond: of all
 *   other tokens together, at the end.
 *   exact speaks of counts and probabilities; entropyBits is an estimate wherever tokens beyond the N are still in.
 */
export function whatIf(candidates, params) {
  let items = samplerItems(candidates);
  let before = samplerSpread(items);
  const stages = [samplerStage('logits', 'raw probability', items, before, before)];
  for (const [name, label, apply] of samplerPlan(candidates, params)) {
    items = apply(items, before);
    const after = samplerSpread(items);
    stages.push(samplerStage(name, label, items, after, before));
    before = after;
  }
  return {
    stages,
    rows: stages.at(-1).rows,
    tailProb: samplerSum(before.probs.subarray(items.size)),
    keptBeyond: Math.round(samplerKept(items).beyond),
    exact: items.setKnown && items.massKnown,
  };
}

/** The active stages in order, as [name, label, apply(items, spread) -> items]. Labels equal the engine's. */
function samplerPlan({ ids, seen }, { temperature, top_k: k, top_p: p, min_p: minP, repetition_penalty: penalty }) {
  const number = samplerNumber;
  const plan = [];
  if (penalty !== 1) {
    const apply = (items) => samplerPenalise(items, seen, samplerFloat32(penalty));
    plan.push(['repetition_penalty', `repetition penalty ${number(penalty)}`, apply]);
  }
  if (temperature === 0) {
    return [...plan, ['greedy', 'temperature 0: greedy', (items) => samplerGreedy(items, ids)]];
  }
  if (temperature !== 1) {
    const apply = (items) => samplerTemper(items, samplerFloat32(temperature));
    plan.push(['temperature', `temperature ${number(temperature)}`, apply]);
  }
  if (k > 0) plan.push(['top_k', `top-k ${k}`, (items) => samplerTopK(items, k)]);
  if (p < 1) plan.push(['top_p', `top-p ${number(p)}`, (items, spread) => samplerTopP(items, spread, p)]);
  if (minP > 0) plan.push(['min_p', `min-p ${number(minP)}`, (items, spread) => samplerMinP(items, spread, minP)]);
  return plan;
}

/**
 * Candidates and histogram as items. Bins stand at their centres, all moved by one common step, so that at the
 * raw logits the histogram holds just the mass that logSumExp leaves for it.
 *
 * @param {SamplerCandidates} candidates
 * @returns {SamplerItems}
 */
function samplerItems({ logits, logSumExp, tailCounts, tailLow, tailHigh }) {
  const size = logits.length;
  const width = (tailHigh - tailLow) / tailCounts.length;
  const scores = new Float64Array(size + tailCounts.length);
  const counts = new Float64Array(scores.length).fill(1);
  scores.set(logits);
  counts.set(tailCounts, size);
  tailCounts.forEach((count, bin) => {
    scores[size + bin] = count ? tailLow + (bin + 0.5) * width : -Infinity;
  });
  const mass = scores.map((score, i) => counts[i] * Math.exp(score - logSumExp));
  const beyond = samplerSum(mass.subarray(size));
  const missing = 1 - samplerSum(mass.subarray(0, size));
  const step = beyond > 0 && missing > 1e-9 ? Math.log(missing / beyond) : 0; // below 1e-9 it is rounding
  for (let i = size; i < scores.length; i += 1) scores[i] += Math.max(-width / 2, Math.min(width / 2, step));
  const ceiling = counts.subarray(size).some((count) => count > 0) ? tailHigh : -Infinity;
  return { scores, counts, size, width, ceiling, setKnown: true, massKnown: true };
}

/** Softmax over the items. each: per token of an item; probs: all tokens of an item together. */
function samplerSpread({ scores, counts }) {
  const top = samplerMax(scores);
  const weights = scores.map((score) => Math.exp(score - top));
  const total = samplerSum(weights.map((weight, i) => weight * counts[i]));
  const each = weights.map((weight) => weight / total);
  return { each, probs: each.map((prob, i) => prob * counts[i]) };
}

/** One stage's summary. The part of a bin that was cut takes its part of the mass with it. */
function samplerStage(name, label, items, after, before) {
  const kept = samplerKept(items);
  let removedMass = 0;
  let entropyBits = 0;
  after.probs.forEach((prob, i) => {
    const stays = items.scores[i] === -Infinity ? 0 : before.each[i] * items.counts[i];
    removedMass += before.probs[i] - stays;
    if (prob > 0) entropyBits -= prob * Math.log2(after.each[i]);
  });
  return {
    name,
    label,
    kept: Math.round(kept.inside + kept.beyond),
    removedMass: Math.max(0, Math.min(1, removedMass)),
    entropyBits: Math.max(0, entropyBits),
    exact: items.setKnown && items.massKnown,
    rows: after.probs.slice(0, items.size),
  };
}

/** Six significant digits, written as Python's "g" format writes them. */
function samplerNumber(value) {
  const rounded = Number(value.toPrecision(6));
  const [digits, power] = rounded.toExponential().split('e');
  if (rounded === 0 || (Number(power) >= -4 && Number(power) < 6)) return String(rounded);
  return `${digits}e${power[0]}${power.slice(1).padStart(2, '0')}`;
}
