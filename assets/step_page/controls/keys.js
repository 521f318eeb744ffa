/**
 * The keyboard map. Listens on the document before anything else, and keeps its hands off while somebody types.
 *
 * A slider or a grid has the arrow keys only when somebody tabbed to it: one that was dragged or clicked gives its focus
 * back, so that the arrows look along the run again.
 *
 * Inside a shadow root the event's target is the host; composedPath()[0] is the element.
 */

import { say } from '../drawing/say.js';

export const KEY_MAP = [
  { keys: ['Space'], shown: say('keys.space'), act: 'step', says: say('keys.step') },
  { keys: ['Shift Space'], shown: say('keys.shift_space'), act: 'slow', says: say('turn.key') },
  { keys: ['p'], shown: 'P', act: 'play', says: say('keys.play') },
  { keys: ['ArrowLeft'], shown: '←', act: 'back', says: say('keys.back') },
  { keys: ['ArrowRight'], shown: '→', act: 'forward', says: say('keys.forward') },
  { keys: ['Home'], shown: say('keys.home'), act: 'first', says: say('keys.first') },
  { keys: ['End'], shown: say('keys.end'), act: 'last', says: say('keys.last') },
  { keys: ['f'], shown: 'F', act: 'force', says: say('keys.force') },
  { keys: ['z'], shown: 'Z', act: 'undo', says: say('keys.undo') },
  { keys: ['b'], shown: 'B', act: 'present', says: say('present.key') },
  { keys: ['1', '2', '3', '4', '5'], shown: '1 … 5', act: 'panel', says: say('present.key_panel') },
  { keys: ['PageDown'], shown: say('keys.page_down'), act: 'nextScene', says: say('lesson.key_next') },
  { keys: ['PageUp'], shown: say('keys.page_up'), act: 'sceneBefore', says: say('lesson.key_back') },
  { keys: ['?'], shown: '?', act: 'help', says: say('keys.help') },
  { keys: ['Escape'], shown: say('keys.esc'), act: 'close', says: say('present.key_close') },
];

/** Whether a key belongs to an input method that is putting a character together; 229 is what Safari says as it ends. */
export function isComposing({ isComposing: composes, keyCode }) {
  return composes || keyCode === 229;
}

const TYPING =
  'textarea, select, [contenteditable=""], [contenteditable="true"], input:not([type="range"]):not([type="checkbox"]):not([type="radio"]):not([type="button"])';
const MOVES_ITSELF = 'input[type="range"], [role="slider"], [role="grid"], [role="application"]';
const PRESSED_BY_SPACE = 'button, summary, input[type="checkbox"], input[type="radio"]';
const ARROWS = ['ArrowLeft', 'ArrowRight', 'Home', 'End'];

/** @returns the action, or null where the key is not ours */
function actionOf(event, root) {
  if (event.ctrlKey || event.metaKey || event.altKey || isComposing(event) || event.defaultPrevented) return null;
  const target = event.composedPath()[0];
  const matches = (selector) => target instanceof Element && target.matches(selector);
  if (matches(TYPING) && !(event.key === 'Escape' && root.contains(target))) return null;
  if (root.querySelector('dialog[open]') || document.querySelector('[role="dialog"][aria-modal="true"]')) return null;
  const entry = KEY_MAP.find(({ keys }) =>
    keys.includes(event.key === ' ' ? (event.shiftKey ? 'Shift Space' : 'Space') : event.key.length === 1 ? event.key.toLowerCase() : event.key),
  );
  if (!entry) return null;
  if (event.key === ' ' && matches(PRESSED_BY_SPACE)) return null;
  if (ARROWS.includes(event.key) && (matches(MOVES_ITSELF) || target.closest?.(MOVES_ITSELF))) return null;
  return entry.act;
}

/**
 * @param {HTMLElement} root the page
 * @param {Record<string, (key: string) => void|false>} actions an action that returns false leaves the key to the browser
 * @returns {() => void} stop listening
 */
export function listenToKeys(root, actions) {
  const held = new Set(['step', 'slow', 'play', 'force', 'undo', 'present', 'help']); // a held key repeats; these act once per press
  const onKey = (event) => {
    if (!root.isConnected) return;
    const act = actionOf(event, root);
    if (!act) return;
    if (event.repeat && held.has(act)) return event.preventDefault();
    if (actions[act]?.(event.key) === false) return undefined;
    event.preventDefault();
    return event.stopPropagation();
  };
  document.addEventListener('keydown', onKey, true);
  return () => document.removeEventListener('keydown', onKey, true);
}

/** @returns {() => void} stop; until then whatever moves by arrow keys loses the focus that a pointer gave it */
export function letGoOfDragged(root) {
  let dragged = null;
  const down = (event) => {
    dragged = event.composedPath()[0].closest?.(MOVES_ITSELF) ?? null;
  };
  const up = () => {
    const pointed = dragged;
    dragged = null;
    if (pointed) setTimeout(() => pointed.blur()); // after the slider's own "change"
  };
  root.addEventListener('pointerdown', down);
  for (const type of ['pointerup', 'pointercancel']) document.addEventListener(type, up);
  return () => {
    root.removeEventListener('pointerdown', down);
    for (const type of ['pointerup', 'pointercancel']) document.removeEventListener(type, up);
  };
}
