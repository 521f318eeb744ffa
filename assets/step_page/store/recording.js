/**
 * The step that is shown until this page's own model is there: the first of a recording that ships with Loupe.
 *
 * FIRST_STEP, a frame in base64, is written in front of the scripts when they are bundled (explorer/components/step_page.py).
 */

import { decodeFrame } from './frame.js';

/** What the page takes over of a recording: the run and what belongs to it, nothing about the machine it came from. */
export const RECORDED_PARTS = ['model', 'settings', 'presets', 'examples', 'session', 'steps', 'tokens', 'pieces'];

/** @returns {{header: object, hydrate: (value: any) => any}} */
export function firstStep() {
  return decodeFrame(Uint8Array.from(atob(FIRST_STEP), (c) => c.charCodeAt(0)));
}
