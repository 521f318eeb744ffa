/**
 * The floor of a step: what it has to read and to multiply, over what this machine was measured to do.
 *
 * Bytes and operations come with the step (computed by the cost model), the rates with the machine (measured). A decode
 * step waits for its bytes. A prefill of many tokens may wait for its arithmetic: the two overlap, so the longer counts.
 */

import { say } from '../drawing/say.js';
import { formatBytes, formatMs, formatNumber } from '../drawing/format.js';

/** @returns {{ms: number, weights: number, cache: number, multiply: number} | null} in ms; null: not measured */
export function floorOf(step, machine) {
  if (!machine || !step.floor) return null;
  const weights = (1000 * step.floor.weights) / machine.bytes_per_s;
  const cache = (1000 * step.floor.cache) / machine.bytes_per_s;
  const multiply = (1000 * step.floor.flops) / machine.flops_per_s;
  const ms = step.index ? weights + cache : Math.max(weights + cache, multiply);
  return { ms, weights, cache, multiply };
}

/** How many times its floor a step's forward took; null where one of the two is not known. */
export function timesFloor(step, machine) {
  const floor = floorOf(step, machine);
  return floor && step.timing_ms ? step.timing_ms.forward / floor.ms : null;
}

/** 1.64 -> "1.64× the floor"; below 1 the machine was measured while it was busy, and that is said. */
export function timesWords(times) {
  if (times === null) return '–';
  return times < 0.995 ? say('floor.too_fast', { times: formatNumber(times) }) : say('floor.times', { times: formatNumber(times) });
}

/** Rows of a tooltip: the floor's parts, and what of the step lies above it. */
export function floorRows(step, machine) {
  const floor = floorOf(step, machine);
  if (!floor || !step.timing_ms) return [];
  const { forward, total } = step.timing_ms;
  const bound = floor.ms > floor.weights + floor.cache ? 'arithmetic' : say('floor.bytes', { weights: formatMs(floor.weights), cache: formatMs(floor.cache) });
  return [
    [say('floor.lower_bound'), `${formatMs(floor.ms)}, ${bound}`],
    [say('floor.above'), `${formatMs(Math.max(0, forward - floor.ms))}, ${timesWords(forward / floor.ms)}`],
    [say('floor.outside'), formatMs(Math.max(0, total - forward))],
  ];
}

/** What the machine was measured to do, in a line. */
export function machineWords(machine) {
  const rate = `${formatBytes(machine.bytes_per_s)}/s`;
  return say('floor.machine', { rate, time: machine.at.slice(11, 19) });
}
