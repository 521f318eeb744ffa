/**
 * Where each token stands in the loop, seen from one step.
 *
 * With P prompt tokens, step s feeds position P + s - 1 (step 0 feeds the whole prompt) and draws the token at
 * position P + s. The fact people get wrong: the token a step draws is not in the cache after that step.
 */

export const ROLE_WORDS = {
  template: 'inserted by the chat template',
  prompt: 'typed in the prompt',
  generated: 'sampled from the model’s distribution',
  forced: 'forced by you',
};

export const STANDING_WORDS = {
  fed: 'fed in this step',
  drawn: 'sampled in this step, not in the cache yet',
  cached: 'in the cache',
  future: 'sampled later',
  waiting: 'not fed yet',
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
  end_id: 'an EOS token was sampled',
  max_new_tokens: 'the limit of new tokens is reached',
  context_limit: 'the context is full',
  stop_string: 'a stop string is complete',
  kv_bytes: 'the cache has reached its byte budget',
  nan: 'the numbers failed (NaN or infinity)',
  user: 'you stopped it',
  disconnect: 'the browser was gone',
};
