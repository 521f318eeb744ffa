/**
 * Norms of every cached key and value, put together from the steps that appended them.
 *
 * A step's plane holds only the positions it added: the prompt at step 0, one position after. The norm of a layer
 * is that of all its KV heads joined: the root of the sum of squares over the heads.
 */

/** Positions are rows: key norm of layer l at position p stands at keys[p * layers + l]. */
export class NormTable {
  constructor() {
    this.clear(0);
  }

  clear(layers) {
    this.layers = layers;
    this.count = 0;
    this.keys = new Float32Array(0);
    this.values = new Float32Array(0);
    this.steps = []; // the records read, in order; one that came again as another object holds the same norms
    this.stepOf = []; // position -> index of the step that appended it
    this.ranges = null;
  }

  /** Read what is new in `store.steps`; start over where history was replaced. */
  sync(store) {
    const layers = store.model?.num_layers ?? 0;
    const known = this.steps.length;
    const last = store.keyOf(store.steps[known - 1]);
    const same = layers === this.layers && known <= store.steps.length && (!known || this.lastKey === last);
    if (!same) this.clear(layers);
    for (const step of store.steps.slice(this.steps.length)) this.#append(step);
    this.lastKey = store.keyOf(this.steps.at(-1));
  }

  #append(step) {
    const plane = step.planes.kv_norms; // (2, L, G, M)
    const [, layers, heads, added] = plane.shape;
    this.#grow((this.count + added) * layers);
    const data = plane.data;
    for (let m = 0; m < added; m++) {
      for (let layer = 0; layer < layers; layer++) {
        let key = 0;
        let value = 0;
        for (let head = 0; head < heads; head++) {
          key += data[(layer * heads + head) * added + m] ** 2;
          value += data[((layers + layer) * heads + head) * added + m] ** 2;
        }
        this.keys[(this.count + m) * layers + layer] = Math.sqrt(key);
        this.values[(this.count + m) * layers + layer] = Math.sqrt(value);
      }
      this.stepOf.push(step.index);
    }
    this.count += added;
    this.steps.push(step);
    this.ranges = null;
  }

  #grow(length) {
    if (length <= this.keys.length) return;
    for (const name of ['keys', 'values']) {
      const wider = new Float32Array(Math.max(length, 2 * this.keys.length, 1024));
      wider.set(this[name]);
      this[name] = wider;
    }
  }

  /**
   * Smallest and largest norm per layer and over all: {keys: {low, high, all: [low, high]}, values: {...}}.
   * The first token is left out where three others are there: it is often far off the rest and would flatten them.
   */
  scale() {
    this.ranges ??= { keys: this.#range(this.keys), values: this.#range(this.values), skipsFirst: this.count > 3 };
    return this.ranges;
  }

  #range(norms) {
    const low = new Float32Array(this.layers).fill(Infinity);
    const high = new Float32Array(this.layers).fill(-Infinity);
    for (let position = this.count > 3 ? 1 : 0; position < this.count; position++) {
      for (let layer = 0; layer < this.layers; layer++) {
        const norm = norms[position * this.layers + layer];
        if (norm < low[layer]) low[layer] = norm;
        if (norm > high[layer]) high[layer] = norm;
      }
    }
    return { low, high, all: [Math.min(...low), Math.max(...high)] };
  }

  /** Norms of one cell by KV head: {keys: [...], values: [...]}. */
  heads(position, layer) {
    const step = this.steps[this.stepOf[position]];
    const [, layers, heads, added] = step.planes.kv_norms.shape;
    const m = position - (step.kv_len - added);
    const data = step.planes.kv_norms.data;
    const read = (side) => Array.from({ length: heads }, (_, head) => data[((side * layers + layer) * heads + head) * added + m]);
    return { keys: read(0), values: read(1) };
  }
}

/** Bytes of one number in the model's dtype. */
export function dtypeBytes(model) {
  return model.kv_bytes_per_token / (2 * model.num_layers * model.num_kv_heads * model.head_dim);
}

/** "30 layers × 9 positions × 3 KV heads × 64 × 2 × 4 B", without the positions where none are given. */
export function kvFormula(model, positions) {
  const parts = [say('counted.layer', { n: model.num_layers })];
  if (positions !== undefined) parts.push(say('counted.position', { n: positions }));
  parts.push(say('counted.kv_head', { n: model.num_kv_heads }), String(model.head_dim), '2', `${dtypeBytes(model)} B`);
  return parts.join(' × ');
}
