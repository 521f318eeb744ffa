/**
 * One answer from Python as bytes: [u32 header length][JSON header][padding to 8][planes].
 *
 * The bytes arrive as a view into a larger buffer, so a plane is aligned
 * within the frame but not always within memory. An unaligned plane is copied, never read askew.
 */

const DTYPES = {
  f4: { width: 4, View: Float32Array },
  i4: { width: 4, View: Int32Array },
  u1: { width: 1, View: Uint8Array },
  f2: { width: 2, View: Uint16Array },
};

/** Every float16 as float32, built once: 65,536 entries, 256 kB. */
let halfTable = null;

function buildHalfTable() {
  const table = new Float32Array(65536);
  for (let bits = 0; bits < 65536; bits++) {
    const sign = bits & 0x8000 ? -1 : 1;
    const exponent = (bits >> 10) & 31;
    const fraction = bits & 1023;
    if (exponent === 0) table[bits] = sign * fraction * 2 ** -24;
    else if (exponent === 31) table[bits] = fraction ? NaN : sign * Infinity;
    else table[bits] = sign * (1 + fraction / 1024) * 2 ** (exponent - 15);
  }
  return table;
}

/** @param {Uint16Array} halves @returns {Float32Array} */
export function decodeHalf(halves) {
  halfTable ??= buildHalfTable();
  const out = new Float32Array(halves.length);
  for (let i = 0; i < halves.length; i++) out[i] = halfTable[halves[i]];
  return out;
}

/** The few float16 planes that were decoded last: a long run must not keep every attention map twice. */
const decodedPlanes = new Map();
const DECODED_KEPT = 6;

/** An array inside a frame, read when it is first looked at. `shape` is row-major. */
export class Plane {
  #bytes;
  #start;
  #dtype;
  constructor(bytes, start, dtype, shape) {
    this.#bytes = bytes;
    this.#start = start;
    this.#dtype = dtype;
    this.shape = shape;
    this.length = shape.reduce((product, n) => product * n, 1);
  }

  /** @returns {Float32Array | Int32Array | Uint8Array} float16 comes out as float32 */
  get data() {
    if (this.#dtype !== 'f2') return this.#view();
    let data = decodedPlanes.get(this);
    if (data)
      decodedPlanes.delete(this); // re-inserted below as the newest
    else data = decodeHalf(this.#view());
    decodedPlanes.set(this, data);
    if (decodedPlanes.size > DECODED_KEPT) decodedPlanes.delete(decodedPlanes.keys().next().value);
    return data;
  }

  #view() {
    const { width, View } = DTYPES[this.#dtype];
    const from = this.#bytes.byteOffset + this.#start;
    if (from % width === 0) return new View(this.#bytes.buffer, from, this.length);
    const end = this.#start + this.length * width;
    return new View(this.#bytes.slice(this.#start, end).buffer, 0, this.length);
  }
}

/** Is this value the description of an array: {dtype, shape, offset}? */
function isPlaneDescriptor(value) {
  return typeof value.dtype === 'string' && Array.isArray(value.shape) && typeof value.offset === 'number';
}

/**
 * @param {Uint8Array} bytes
 * @returns {{header: object, start: number, plane: (descriptor: object) => Plane, hydrate: (value: any) => any}}
 *   `start`: where the planes begin; `hydrate` returns the value with every array description in it replaced by its Plane
 */
export function decodeFrame(bytes) {
  const headerLength = new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength).getUint32(0, true);
  const header = JSON.parse(new TextDecoder().decode(bytes.subarray(4, 4 + headerLength)));
  const planesStart = Math.ceil((4 + headerLength) / 8) * 8;
  const plane = (p) => {
    if (!DTYPES[p.dtype]) throw new Error(`Plane of unknown dtype ${p.dtype}.`);
    return new Plane(bytes, planesStart + p.offset, p.dtype, p.shape);
  };
  const hydrate = (value) => {
    if (Array.isArray(value)) return value.map(hydrate);
    if (value === null || typeof value !== 'object') return value;
    if (isPlaneDescriptor(value)) return plane(value);
    return Object.fromEntries(Object.entries(value).map(([key, inner]) => [key, hydrate(inner)]));
  };
  return { header, start: planesStart, plane, hydrate };
}
