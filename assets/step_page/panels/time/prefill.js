/**
 * What a prefill read and how fast, as opposed to what it took over from a prompt that was prefilled before.
 *
 * A prompt that is in the cache already has no speed. Only tokens that went through the
 * layers count, over the time of the forward passes alone; waiting for others says nothing about this machine.
 */

import { say } from '../../drawing/say.js';
import { formatNumber } from '../../drawing/format.js';

/** Tokens that this step ran through the layers. */
export function tokensRead(step) {
  return step.input_ids.length - (step.reused_tokens ?? 0);
}

/** Tokens per second of the forward passes; null where nothing was read or timed. */
export function prefillSpeed(step) {
  const forward = step.timing_ms?.forward ?? 0;
  return forward > 0 && tokensRead(step) > 0 ? (1000 * tokensRead(step)) / forward : null;
}

/** "230 tokens/s", or why there is no such number. */
export function prefillSpeedWords(step) {
  const speed = prefillSpeed(step);
  if (speed !== null) return `${formatNumber(speed)} tokens/s`;
  if (!step.timing_ms) return say('prefill.not_timed');
  return tokensRead(step) ? '–' : say('prefill.copied_not_read');
}

/** "in one forward pass", "in 3 forward passes, 512 tokens copied from a shared prompt" */
export function howRead(step) {
  if (tokensRead(step) <= 0) return say('prefill.copied');
  const passes = say('prefill.in_passes', { n: step.forwards });
  return step.reused_tokens ? say('prefill.partly_copied', { passes, n: step.reused_tokens }) : passes;
}
