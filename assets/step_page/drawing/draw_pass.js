/**
 * One drawing of the page in two halves: first every part writes what it shows, then canvases are painted and sizes read.
 *
 * A canvas that sets its font, and a size that is asked for, make the browser work out styles and layout at once. Between
 * the writes of the parts it would do so again and again.
 */

let waitingForWrites = null; // Map of what was put off, by whose it is; null outside of a drawing

/** Let `write` change the page, and do then what `afterWrites` put off. */
export function drawTogether(write) {
  waitingForWrites = new Map();
  write();
  const acts = waitingForWrites.values();
  waitingForWrites = null;
  for (const act of acts) {
    try {
      act();
    } catch (error) {
      console.error('Loupe: a part of the page could not be drawn.', error); // the others still are
    }
  }
}

/** Now, or at the end of the drawing that is going on; once for the same `owner`, the last time it was asked for. */
export function afterWrites(owner, act) {
  if (waitingForWrites) waitingForWrites.set(owner, act);
  else act();
}
