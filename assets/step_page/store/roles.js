/**
 * Where each token stands in the loop, seen from one step.
 *
 * With P prompt tokens, step s feeds position P + s - 1 (step 0 feeds the whole prompt) and draws the token at
 * position P + s. The fact people get wrong: the token a step draws is not in the cache after that step.
 */

import { say } from '../drawing/say.js';

export const ROLE_WORDS = {
  template: say('roles.template'),
  prompt: say('roles.prompt'),
  generated: say('roles.generated'),
  forced: say('roles.forced'),
};

export const STANDING_WORDS = {
  fed: say('roles.fed'),
  drawn: say('roles.drawn'),
  cached: say('roles.cached'),
  future: say('roles.future'),
  waiting: say('roles.waiting'),
};

/** The step that drew the token at this position; prompt tokens belong to step 0, which fed them all. */
export function stepOfPosition(store, position) {
  return Math.max(0, Math.min(position - store.promptLength, store.newest));
}

/** Position of the token that the step drew. */
export function drawnPosition(store, step) {
  return store.promptLength + step;
}

/** @returns {'fed'|'drawn'|'cached'|'future'|'waiting'} seen from the selected step */
export function standing(store, position) {
  const step = store.selected;
  if (!step) return 'waiting';
  const drawn = drawnPosition(store, step.index);
  if (position > drawn) return 'future';
  if (position === drawn) return 'drawn';
  return step.positions.includes(position) ? 'fed' : 'cached';
}

export const FINISH_WORDS = {
  end_id: say('roles.end_id'),
  max_new_tokens: say('roles.max_new_tokens'),
  context_limit: say('roles.context_limit'),
  stop_string: say('roles.stop_string'),
  kv_bytes: say('roles.kv_bytes'),
  nan: say('roles.nan'),
  user: say('roles.user'),
  disconnect: say('roles.disconnect'),
};
