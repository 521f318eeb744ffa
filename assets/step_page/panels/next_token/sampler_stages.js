/**
 * What each stage of sampling does to the items that stand for a vocabulary.
 *
 * An item is one candidate (it counts 1) or one bin of the histogram (it counts as many tokens as lie in it).
 * A cut item has score -Infinity. Items 0..N-1 are the candidates, in the record's order; bins follow.
 * Every stage returns new items and leaves the old ones alone.
 */

/**
 * @typedef {Object} SamplerItems
 * @property {Float64Array} scores   (N + B)
 * @property {Float64Array} counts   (N + B), a fraction where a bin is cut in two
 * @property {number} size           N
 * @property {number} width          of a bin, in the scores' present scale
 * @property {number} ceiling        no token of the histogram can score higher; -Infinity once none is left
 * @property {boolean} setKnown      no cut so far had to guess at the histogram
 * @property {boolean} massKnown     the histogram's share of the probability is known
 */

/** Seen scores of 0 or more are divided by the penalty, others multiplied. Beyond the N nobody knows what was seen. */
export function samplerPenalise(items, seen, penalty) {
  const change = (score) => samplerRound(score < 0 ? score * penalty : score / penalty);
  const scores = items.scores.map((score, i) => (i < items.size && seen[i] ? change(score) : score));
  const ceiling = penalty < 1 ? change(items.ceiling) : items.ceiling;
  return { ...items, scores, ceiling, massKnown: ceiling === -Infinity };
}

/** A common shift changes no probability; it keeps a tiny temperature within float32. */
export function samplerTemper(items, temperature) {
  const top = samplerMax(items.scores);
  const shift = Math.abs(top) > SAMPLER_FLOAT32_MAX * temperature ? top : 0;
  const change = (score) => samplerRound(Math.fround(score - shift) / temperature);
  const scores = items.scores.map((score, i) => (i < items.size ? change(score) : (score - shift) / temperature));
  const ceiling = change(items.ceiling);
  return { ...items, scores, ceiling, width: items.width / temperature, massKnown: ceiling === -Infinity };
}

/** The likeliest candidate alone, the lowest id on a tie. */
export function samplerGreedy(items, ids) {
  const head = items.scores.subarray(0, items.size);
  const top = samplerMax(head);
  let best = -1;
  head.forEach((score, i) => {
    if (score === top && (best < 0 || ids[i] < ids[best])) best = i;
  });
  return samplerWithoutTail(samplerKeep(items, (i) => i === best), top > items.ceiling);
}

/** Keep the k highest and all that tie with the k-th. */
export function samplerTopK(items, k) {
  const order = samplerFalling(items);
  const { place, over } = samplerPlaceOf(order, items.counts, k);
  if (place === order.length) return items;
  const edge = order[place];
  const floor = items.scores[edge];
  if (edge < items.size && floor > items.ceiling) {
    return samplerWithoutTail(samplerKeep(items, (i) => items.scores[i] >= floor), true);
  }
  const kept = new Set(order.slice(0, place + 1));
  const counts = items.counts.slice();
  counts[edge] -= over;
  const stays = (i) => kept.has(i) || items.scores[i] === floor;
  return { ...samplerKeep({ ...items, counts }, stays), setKnown: false, massKnown: false };
}

/** Where the k-th token of a ranking lies, and how many tokens of that item come after it. */
function samplerPlaceOf(order, counts, k) {
  let passed = 0;
  for (let place = 0; place < order.length; place += 1) {
    passed += counts[order[place]];
    if (passed >= k) return { place, over: passed - k };
  }
  return { place: order.length, over: 0 };
}

/** Drop from the bottom while what is dropped holds 1 - p or less; the likeliest token always stays. */
export function samplerTopP(items, { each }, p) {
  const limit = Math.fround(1 - p);
  const order = samplerFalling(items);
  const counts = items.counts.slice();
  let dropped = 0;
  for (let place = order.length - 1; place >= 0; place -= 1) {
    const i = order[place];
    const fits = samplerFits(dropped, each[i], counts[i], limit);
    const stay = Math.max(counts[i] - fits, place === 0 ? 1 : 0);
    dropped += each[i] * (counts[i] - stay);
    counts[i] = stay;
    if (stay > 0) break;
  }
  const cut = samplerKeep({ ...items, counts }, (i) => counts[i] > 0);
  const { beyond } = samplerKept(cut);
  if (beyond === 0) return samplerWithoutTail(cut, items.massKnown);
  const whole = beyond === samplerKept(items).beyond;
  return { ...cut, setKnown: items.setKnown && items.massKnown && whole, massKnown: items.massKnown && whole };
}

/** How many of `count` equal tokens can still be dropped; float32 like the engine's cumulative sum. */
function samplerFits(dropped, each, count, limit) {
  if (Math.fround(dropped + each * count) <= limit) return count;
  return count <= 1 ? 0 : Math.max(0, Math.min(count, Math.floor((limit - dropped) / each)));
}

/** Cut what is less likely than minP times the likeliest. Only differences of scores matter, not the whole mass. */
export function samplerMinP(items, { each }, minP) {
  const top = samplerMax(each);
  const floor = Math.fround(minP * Math.fround(top));
  const lowest = samplerMax(items.scores) + Math.log(minP);
  const share = (score) => Math.max(0, Math.min(1, (score - lowest) / (items.width || 1) + 0.5)); // of a bin, above it
  const counts = items.counts.map((count, i) => (i < items.size ? count : count * share(items.scores[i])));
  const stays = (i) => (i < items.size ? Math.fround(each[i]) >= floor || each[i] === top : counts[i] > 0);
  const cut = samplerKeep({ ...items, counts }, stays);
  return items.ceiling < lowest ? samplerWithoutTail(cut, true) : { ...cut, massKnown: false };
}

/** Items with all but the marked ones cut. */
function samplerKeep(items, stays) {
  return { ...items, scores: items.scores.map((score, i) => (stays(i) ? score : -Infinity)) };
}

/** All tokens beyond the candidates are gone; `sure` says that this did not hang on an estimate. */
function samplerWithoutTail(items, sure) {
  const scores = items.scores.map((score, i) => (i < items.size ? score : -Infinity));
  return { ...items, scores, ceiling: -Infinity, setKnown: items.setKnown && sure, massKnown: true };
}

/** Indices of items not cut, by falling score; ties in rising order of index. */
function samplerFalling({ scores }) {
  const order = Array.from(scores.keys()).filter((i) => scores[i] !== -Infinity);
  return order.sort((a, b) => scores[b] - scores[a] || a - b);
}

/** Tokens not cut: among the candidates, and beyond them. */
export function samplerKept({ scores, counts, size }) {
  const kept = { inside: 0, beyond: 0 };
  scores.forEach((score, i) => {
    if (score !== -Infinity) kept[i < size ? 'inside' : 'beyond'] += counts[i];
  });
  return kept;
}

const SAMPLER_FLOAT32_MAX = 3.4028234663852886e38;
const SAMPLER_FLOAT32_TINY = 1.1754943508222875e-38;

/** A score as float32, kept finite unless it was cut. */
function samplerRound(score) {
  if (score === -Infinity) return score;
  return Math.fround(Math.max(-SAMPLER_FLOAT32_MAX, Math.min(SAMPLER_FLOAT32_MAX, score)));
}

/** A setting as float32 that is neither 0 nor infinite. */
export function samplerFloat32(value) {
  return Math.fround(Math.max(SAMPLER_FLOAT32_TINY, Math.min(SAMPLER_FLOAT32_MAX, value)));
}

export function samplerSum(values) {
  return values.reduce((a, b) => a + b, 0);
}

export function samplerMax(values) {
  return values.reduce((a, b) => Math.max(a, b), -Infinity);
}
