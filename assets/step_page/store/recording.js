/**
 * The step that is shown until this page's own model is there: a frame of the live line that was recorded earlier.
 *
 * RECORDED, the frame in base64, is written in front of the scripts when they are bundled (explorer/components/step_page.py).
 * Of what it says, only the run and what belongs to it is taken over, nothing about the server it came from.
 */

import { decodeFrame } from './frame.js';

const RECORDED_PARTS = ['model', 'settings', 'presets', 'examples', 'session', 'steps', 'tokens', 'pieces'];

/** @returns {{header: object, hydrate: (value: any) => any}} */
export function recordedFrame() {
  const { header, hydrate } = decodeFrame(Uint8Array.from(atob(RECORDED), (c) => c.charCodeAt(0)));
  return { header: Object.fromEntries(RECORDED_PARTS.map((name) => [name, header[name]])), hydrate };
}
