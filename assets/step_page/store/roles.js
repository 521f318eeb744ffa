/**
 * Where each token stands in the loop, seen from one step.
 *
 * With P prompt tokens, step s feeds position P + s - 1 (step 0 feeds the whole prompt) and draws the token at
 * position P + s. The fact people get wrong: the token a step draws is not in the cache after that step.
 */

import { say } from '../drawing/say.js';

export const ROLE_WORDS = {
  template: say('roles.inserted_by_the_chat_template'),
  prompt: say('roles.typed_in_the_prompt'),
  generated: say('roles.sampled_from_the_models_distribution'),
  forced: say('roles.forced_by_you'),
};

export const STANDING_WORDS = {
  fed: say('roles.fed_in_this_step'),
  drawn: say('roles.sampled_in_this_step_not'),
  cached: say('roles.in_the_cache'),
  future: say('roles.sampled_later'),
  waiting: say('roles.not_fed_yet'),
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
  end_id: say('roles.an_eos_token_was_sampled'),
  max_new_tokens: say('roles.the_limit_of_new_tokens'),
  context_limit: say('roles.the_context_is_full'),
  stop_string: say('roles.a_stop_string_is_complete'),
  kv_bytes: say('roles.the_cache_has_reached_its'),
  nan: say('roles.the_numbers_failed_nan_or'),
  user: say('roles.you_stopped_it'),
  disconnect: say('roles.the_browser_was_gone'),
};
