/**
 * A `.loupe` file read in the browser: a line that names the format, then a frame of the live line, compressed
 * (docs/recordings.md). Nothing of it is shown before all of it was checked; the server has the same reader in Python
 * (explorer/recordings/reading.py).
 *
 * RECORDING_SCHEMA is written in front of the scripts when they are bundled (explorer/components/step_page.py).
 */

import { say } from '../drawing/say.js';
import { decodeFrame } from './frame.js';
import { schemaFault } from './schema.js';

const RECORDING_MAGIC = 'loupe recording ';
const RECORDING_VERSION = 1;
const MOST_UNPACKED = 512_000_000;
const BYTES_OF = { f4: 4, f2: 2, i4: 4, u1: 1 };
const TAIL_BINS = 64;
const THUMB_BINS = 64;

export class BadRecording extends Error {}

/**
 * @param {Uint8Array} bytes of a file
 * @returns {Promise<{header: object, hydrate: (value: any) => any}>} rejects with BadRecording, which says why in words
 */
export async function readRecordingFile(bytes) {
  const frame = await unpacked(bodyOf(bytes));
  let decoded;
  try {
    decoded = decodeFrame(frame);
  } catch {
    throw new BadRecording(say('recording.cut'));
  }
  const fault = schemaFault(decoded.header, RECORDING_SCHEMA) ?? runFault(decoded.header, frame.length - decoded.start);
  if (fault) throw new BadRecording(say('recording.wrong', fault));
  return decoded;
}

/** What follows the first line, if that names a format which is read here. */
function bodyOf(bytes) {
  const line = new TextDecoder('latin1').decode(bytes.subarray(0, RECORDING_MAGIC.length + 8));
  const [, version] = line.match(/^loupe recording (\d+)\n/) ?? [];
  if (!version) throw new BadRecording(say('recording.not_one'));
  if (Number(version) > RECORDING_VERSION) throw new BadRecording(say('recording.newer', { version, most: RECORDING_VERSION }));
  return bytes.subarray(RECORDING_MAGIC.length + version.length + 1);
}

async function unpacked(body) {
  const chunks = [];
  let size = 0;
  try {
    const reader = new Blob([body]).stream().pipeThrough(new DecompressionStream('gzip')).getReader();
    for (let { done, value } = await reader.read(); !done; { done, value } = await reader.read()) {
      size += value.length;
      if (size > MOST_UNPACKED) {
        reader.cancel();
        break;
      }
      chunks.push(value);
    }
  } catch {
    throw new BadRecording(say('recording.cut'));
  }
  if (size > MOST_UNPACKED) throw new BadRecording(say('recording.too_large', { megabytes: MOST_UNPACKED / 1e6 }));
  return new Uint8Array(await new Blob(chunks).arrayBuffer());
}

/** What no schema can say: that all of it is of one run. */
function runFault({ model, session, steps, tokens }, numBytes) {
  const { prompt_ids: prompt, chosen_ids: chosen } = session.recipe;
  if (steps.length !== chosen.length) return { where: 'steps', what: `are ${steps.length}, and ${chosen.length} tokens were chosen` };
  const ids = [...prompt, ...chosen];
  if (!sameNumbers(ids, tokens.map(({ id }) => id))) return { where: 'tokens', what: 'are not those of the recipe' };
  for (const [index, step] of steps.entries()) {
    const what = stepFault(step, index, prompt, chosen) ?? planesFault(step, model, numBytes);
    if (what) return { where: `step ${index}`, what };
  }
  return null;
}

function stepFault(step, index, prompt, chosen) {
  const fed = index ? [chosen[index - 1]] : prompt;
  if (step.index !== index || step.kv_len !== prompt.length + index) return `names itself ${step.index} and has ${step.kv_len} tokens in the cache`;
  const isOwn = sameNumbers(step.input_ids, fed) && step.draw.token_id === chosen[index];
  return isOwn ? null : 'fed or drew other tokens than the recipe has';
}

function planesFault({ planes, input_ids: fed, kv_len: keys, stages }, model, numBytes) {
  const [kept] = planes.cand_ids.shape;
  const { num_layers: layers, num_heads: heads } = model;
  const shapes = {
    kv_norms: [2, layers, model.num_kv_heads, fed.length], cand_ids: [Math.min(kept, model.vocab_size)], cand_logits: [kept], cand_seen: [kept],
    tail_counts: [TAIL_BINS], stage_probs: [stages.length, Math.min(kept, planes.stage_probs.shape[1])],
    attention: [layers, heads, keys], attention_thumb: [layers, heads, THUMB_BINS],
  };
  for (const [name, plane] of Object.entries(planes)) {
    if (!Object.hasOwn(shapes, name)) return `has an array ${name}, which is not known`;
    const { dtype, shape, offset } = plane;
    if (!sameNumbers(shape, shapes[name])) return `has an array ${name} of shape ${shape}; it must be ${shapes[name]}`;
    const end = offset + BYTES_OF[dtype] * shape.reduce((product, n) => product * n, 1);
    if (offset % 8 || end > numBytes) return `has an array ${name} that does not lie in the file`;
  }
  return null;
}

function sameNumbers(one, other) {
  return one.length === other.length && one.every((n, at) => n === other[at]);
}
