/** Whether a run is where a scene needs it: the same prompt, settings and forced tokens, and as many steps at least. */

import { sameSampling } from '../store/distribution.js';

/** @param {object|null} state as explorer/lessons/states.py gives it; null: any */
export function fitsState(store, state) {
  if (!state) return true;
  const { session, settings, steps } = store;
  if (!store.hasRun || !settings || session?.prompt !== state.prompt || session.mode !== state.mode) return false;
  if (store.newest < state.steps || !sameSampling(settings.sampling, state.sampling) || settings.seed !== state.seed) return false;
  if (state.afresh && steps[0].reused_tokens > 0) return false;
  if (!steps.slice(0, state.steps + 1).every((step) => sameSampling(step.sampling, samplingAt(state, step.index)))) return false;
  const forced = steps.slice(0, state.steps + 1).filter((step) => step.forced).map((step) => step.index);
  return forced.join() === state.forced.join() && sameStops(store, state.stop);
}

/** With which settings a step is made in this state. */
function samplingAt({ history }, step) {
  return history.findLast(([from]) => from <= step)[1];
}

/** A class may allow fewer tokens than a lesson asks for. */
function sameStops({ settings, limits }, wanted) {
  const { stop } = settings;
  const most = Math.min(wanted.max_new_tokens, limits.new_tokens || Infinity);
  return stop.use_end_ids === wanted.use_end_ids && stop.max_new_tokens === most && stop.stop_strings.join('\0') === wanted.stop_strings.join('\0');
}
