/** What a reader is asked to do, in words that name the button or the key. */

import { say } from '../drawing/say.js';
import { formatCount } from '../drawing/format.js';

const LOOKS = {
  step: (step) => (step === 'newest' ? say('lesson.you_look_newest') : step === 0 ? say('lesson.you_look_prefill') : say('lesson.you_look_step', { step })),
  token: (token) => say('lesson.you_look_token', { token }),
  layer: (layer) => say('lesson.you_look_layer', { layer }),
  head: (head) => say('lesson.you_look_head', { head }),
};

const OPENS = {
  forward: () => say('lesson.you_open_forward'),
  stops: () => say('lesson.you_open_stops'),
  settings: () => say('lesson.you_open_settings'),
  checks: () => say('lesson.you_check'),
  predictions: () => say('lesson.you_open_predictions'),
  layers: () => say('lesson.you_open_layers'),
  surprisal: () => say('lesson.you_open_surprisal'),
  help: () => say('lesson.you_open_help'),
  branches: () => say('lesson.you_open_branches'),
  model: () => say('lesson.you_open_model'),
};

const ACTS = {
  prefill: ({ prompt }) => say('lesson.you_prefill', { prompt }),
  step: ({ n }) => say('lesson.you_step', { n }),
  slow: () => say('lesson.you_slow'),
  play: ({ n }) => say('lesson.you_play', { n }),
  look: (action) => action.layer !== undefined && action.head !== undefined ? say('lesson.you_look_square', action) : Object.entries(LOOKS).filter(([name]) => action[name] !== undefined).map(([name, words]) => words(action[name])).join(' '),
  open: ({ name }) => OPENS[name](),
  close: () => say('lesson.you_close'),
  set: ({ words }) => say('lesson.you_set', { words }),
  force: ({ text }) => say('lesson.you_force', { text }),
  rewind: ({ step }) => say('lesson.you_rewind', { step }),
  fork: () => say('lesson.you_fork'),
  again: () => say('lesson.you_again'),
  samples: () => say('lesson.you_samples'),
  check: () => say('lesson.you_check'),
  measure: () => say('lesson.you_measure'),
  triangle: () => say('lesson.you_triangle'),
};

/** @param {{act: string}} action @returns {string} */
export function actWords(action) {
  return ACTS[action.act](action);
}
