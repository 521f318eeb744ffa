/** The interval [0, 1) shared out among the tokens by falling probability, and samples: which share a number falls into. */

/**
 * @typedef {{id: number|null, low: number, high: number}} Segment id null: every token that has no share of its own
 *
 * Segments of [0, 1): tokens by falling probability, then everything that is not a candidate as one rest.
 * @param {ArrayLike<number>} ids @param {ArrayLike<number>} probs aligned with ids
 * @returns {Segment[]}
 */
export function drawSegments(ids, probs) {
  const order = Array.from(probs, (_, i) => i).filter((i) => probs[i] > 0).sort((a, b) => probs[b] - probs[a]);
  const segments = [];
  let low = 0;
  for (const i of order) {
    const high = Math.min(1, low + probs[i]);
    segments.push({ id: ids[i], low, high });
    low = high;
  }
  if (1 - low > 1e-4) segments.push({ id: null, low, high: 1 });
  else if (segments.length) segments.at(-1).high = 1;
  return segments;
}

/** A token drawn from beyond the candidates gets its own place in the rest. @returns {Segment[]} */
export function withDrawn(segments, { drawn_id: id, low, high }) {
  const rest = segments.at(-1);
  if (rest?.id !== null || high <= rest.low || segments.some((segment) => segment.id === id)) return segments;
  return [...segments.slice(0, -1), { ...rest, high: low }, { id, low, high }, { ...rest, low: high }];
}

/** The share that a number in [0, 1) falls into. @returns {Segment|undefined} */
export function segmentAt(segments, u) {
  return segments.find(({ low, high }) => u >= low && u < high);
}

/** How often each token is sampled by these numbers. @returns {Map<number|null, number>} null: the rest together */
export function sampleCounts(segments, numbers) {
  const counts = new Map();
  for (const u of numbers) {
    const id = segmentAt(segments, u)?.id ?? null;
    counts.set(id, (counts.get(id) ?? 0) + 1);
  }
  return counts;
}

/**
 * Numbers in [0, 1), the same for the same seed: mulberry32, a 32-bit counter through a mixing function.
 * @param {number} seed @param {number} count @returns {Float64Array}
 */
export function seededNumbers(seed, count) {
  let state = seed >>> 0;
  return Float64Array.from({ length: count }, () => {
    state = (state + 0x6d2b79f5) >>> 0;
    let mixed = Math.imul(state ^ (state >>> 15), state | 1);
    mixed ^= mixed + Math.imul(mixed ^ (mixed >>> 7), mixed | 61);
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 2 ** 32;
  });
}
