/**
 * Attention rows of recorded steps: from the step's own plane, from an answer fetched later, or pooled.
 *
 * A row belongs to the step's last query and runs over the keys in the cache then. A mean over heads is a plain
 * mean of rows, which already sum to 1; a second softmax would flatten it.
 */

import { say } from '../drawing/say.js';

export const HEAD_MEAN = -1;

/** The array in an answer, whatever the answer calls it. */
function planeInside(value) {
  if (value?.shape) return value;
  return Object.values(value ?? {}).find((inner) => inner?.shape) ?? null;
}

export class AttentionRows {
  /** @param {() => void} arrived called when something that was asked for has come (or has failed) */
  constructor(store, arrived) {
    this.store = store;
    this.arrived = arrived;
    this.answers = new Map(); // request key -> Plane, 'asked', or {message}
    this.rows = new Map();
    this.rowsFor = '';
    this.epoch = -1;
    this.known = { model: null, ids: [], steps: [] }; // what `answers` belongs to
  }

  /** Once history was replaced, forget what does not stand on the very same tokens. */
  sync() {
    const { store } = this;
    const epoch = `${store.session?.sid}/${store.epoch}`;
    const ids = store.tokens.map(({ id }) => id);
    if (epoch !== this.epoch) {
      const kept = this.#stillTrue(ids);
      this.epoch = epoch;
      this.answers = new Map(kept);
      this.rows.clear();
    }
    this.known = { model: store.model?.id, ids, steps: store.steps };
  }

  /** Weights of steps that fed the same tokens before and after a rewind, a fork or a forced token. */
  #stillTrue(ids) {
    const { known, store } = this;
    if (known.model !== store.model?.id) return [];
    let common = 0;
    while (common < ids.length && ids[common] === known.ids[common]) common += 1;
    return known.steps
      .filter((old) => old.kv_len <= common && store.steps[old.index]?.kv_len === old.kv_len)
      .map((old) => [`attention/${old.index}`, this.full(old)])
      .filter(([, plane]) => plane);
  }

  #answer(key) {
    const answer = this.answers.get(key);
    return answer?.shape ? answer : null;
  }

  /** All weights of a step, (L, H, K), or null. */
  full(step) {
    const plane = step.planes.attention ?? this.#answer(`attention/${step.index}`);
    return plane?.shape.length === 3 && plane.shape[2] === step.kv_len ? plane : null;
  }

  /** Max-pooled weights of a step, (L, H, bins) as bytes, or null. */
  pooled(step) {
    if (step.planes.attention_thumb) return step.planes.attention_thumb;
    const plane = this.#answer(`attention/${step.index}`);
    return plane && plane.shape[2] !== step.kv_len ? plane : null;
  }

  /** The row of one head (or HEAD_MEAN) over all keys of the step, or null where it is not here. */
  row(step, layer, head) {
    const wanted = `${layer}/${head}`;
    if (wanted !== this.rowsFor) {
      this.rows.clear();
      this.rowsFor = wanted;
    }
    const known = this.rows.get(step);
    if (known) return known;
    const plane = this.full(step);
    const single = plane ? null : this.#answer(`layer/${step.index}/${layer}`);
    if (!plane && !single) return null;
    const row = plane ? sliceHead(plane, layer, head) : sliceHead(single, 0, head);
    this.rows.set(step, row);
    return row;
  }

  /** The pooled row of one head, values 0 to 1, or null. */
  pooledRow(step, layer, head) {
    const plane = this.pooled(step);
    return plane ? sliceHead(plane, layer, head).map((value) => (plane.data instanceof Uint8Array ? value / 255 : value)) : null;
  }

  /**
   * The prompt's own rows for one head, or null: row(q) runs over the keys 0..q. A very long prompt's map is pooled.
   * @returns {{pooled: boolean, row: (query: number) => Float32Array} | null}
   */
  triangle(layer, head, promptLength) {
    const map = this.#answer(`triangle/${layer}/${head}`);
    if (!map) return null;
    const size = map.shape[1];
    const pooled = size < promptLength;
    const unit = map.data instanceof Uint8Array ? 1 / 255 : 1;
    const place = (index) => (pooled ? Math.floor((index * size) / promptLength) : index);
    const row = (query) => Float32Array.from({ length: query + 1 }, (_, key) => map.data[place(query) * size + place(key)] * unit);
    return { pooled, row };
  }

  /** 'here', 'pooled', 'asked', 'failed' or 'missing'. */
  state(step, layer) {
    if (this.full(step) || this.#answer(`layer/${step.index}/${layer}`)) return 'here';
    if (this.pooled(step)) return 'pooled';
    const answer = this.answers.get(`attention/${step.index}`);
    if (answer === 'asked') return 'asked';
    return answer ? 'failed' : 'missing';
  }

  message(step) {
    return this.answers.get(`attention/${step.index}`)?.message ?? '';
  }

  /** Ask for what this step and layer lack. Each thing is asked for once. */
  request(step, layer) {
    const state = this.state(step, layer);
    if (state === 'missing') this.#ask(`attention/${step.index}`, 'attention', { step: step.index });
    if (state === 'pooled') this.#ask(`layer/${step.index}/${layer}`, 'attention_layer', { step: step.index, layer });
  }

  requestTriangle(layer, head) {
    this.#ask(`triangle/${layer}/${head}`, 'triangle', { layer, head });
  }

  asked(layer, head) {
    return this.answers.get(`triangle/${layer}/${head}`) === 'asked';
  }

  async #ask(key, op, args) {
    if (this.answers.has(key)) return;
    const { answers, epoch } = this;
    answers.set(key, 'asked');
    let result;
    try {
      const value = await this.store.send(op, args);
      const plane = planeInside(value);
      // A map is decoded once: it is read row by row at every drawing.
      result = plane ? (op === 'triangle' ? { shape: plane.shape, data: plane.data } : plane) : { message: say('attention_data.empty') };
    } catch (error) {
      result = { message: error.message ?? String(error) };
    }
    if (this.epoch !== epoch) return;
    answers.set(key, result);
    this.arrived();
  }
}

/** One head of a plane (L, H, K) or (H, K), or the plain mean over the heads, as its own Float32Array. */
function sliceHead(plane, layer, head) {
  const keys = plane.shape.at(-1);
  const heads = plane.shape.at(-2);
  const data = plane.data;
  const start = plane.shape.length === 3 ? layer * heads * keys : 0;
  if (head !== HEAD_MEAN) return Float32Array.from(data.subarray(start + head * keys, start + (head + 1) * keys));
  const mean = new Float32Array(keys);
  for (let h = 0; h < heads; h++) for (let k = 0; k < keys; k++) mean[k] += data[start + h * keys + k] / heads;
  return mean;
}

/**
 * Rows pooled until at most `most` are left: each then holds the largest weights of `each` neighbouring queries. The last
 * row stays as it is.
 * @param {Array<{position: number, values: Float32Array|null}>} lines in order
 */
export function pooledLines(lines, most) {
  const each = Math.ceil((lines.length - 1) / Math.max(1, most - 1));
  if (each <= 1) return { lines, each: 1 };
  const groups = [];
  for (let start = 0; start < lines.length - 1; start += each) groups.push(lines.slice(start, Math.min(start + each, lines.length - 1)));
  return { lines: [...groups.map(largestOf), lines.at(-1)], each };
}

function largestOf(group) {
  const rows = group.map(({ values }) => values).filter(Boolean);
  const longest = Math.max(...rows.map((row) => row.length), 0);
  const values = new Float32Array(longest);
  for (const row of rows) for (let key = 0; key < row.length; key++) values[key] = Math.max(values[key], row[key]);
  return { ...group.at(-1), first: group[0].position, values: longest ? values : null };
}

/** The row without its first key, rescaled to the sum it had: an altered row, to be labelled so. */
export function withoutFirst(row) {
  if (!row || row.length < 2) return row;
  const sum = row.reduce((total, value) => total + value, 0);
  const rest = sum - row[0];
  return row.map((value, key) => (key === 0 || rest <= 0 ? 0 : (value * sum) / rest));
}

/** Where a value from 0 to 1 stands on the chosen scale. */
export function attentionScale(name) {
  return name === 'linear' ? (value) => value : Math.sqrt;
}
