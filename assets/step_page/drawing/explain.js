/**
 * What a thing is, in place: a "?" that opens two plain sentences from the glossary, how the number is made, and where to
 * try it; and the same for every word marked with data-term, on hover, on tap and when a key brings the focus to it.
 *
 * GLOSSARY is written in front of the scripts when they are bundled (explorer/components/step_page.py).
 *
 * For tests: button.what-is, .popover-term; [data-term], .lp-tip
 */

import { make } from './dom.js';
import { Popover } from './overlay.js';
import { say } from './say.js';
import { makeTooltip } from './tooltip.js';

const HOVER_MS = 350;

/** @returns {{name: string, says: string, how: string, where: string} | null} */
export function termOf(name) {
  const terms = typeof GLOSSARY === 'undefined' ? [] : GLOSSARY;
  return terms.find((term) => term.name === name) ?? null;
}

/** A "?" for a term; null where the glossary has none. */
export function whatIs(root, name) {
  const term = termOf(name);
  if (!term) return null;
  const button = make('button.what-is', { 'aria-label': say('panel.what_is', { name }), title: say('panel.what_is', { name }) }, '?');
  new Popover(root, button, { title: name, name: 'term' }, (body) =>
    body.replaceChildren(
      make('p.term-says', {}, term.says),
      term.how ? make('p', {}, make('b', {}, say('panel.how_made')), ' ', term.how) : '',
      make('p', {}, make('b', {}, say('panel.try_it')), ' ', term.where),
    ),
  );
  return button;
}

/** Let every word with data-term below `root` explain itself. @returns {() => void} ends it */
export function explainTerms(root) {
  const tip = makeTooltip(root);
  let timer = 0;
  const show = (node) => {
    const term = termOf(node.dataset.term);
    if (!term || node.getAttribute('aria-expanded') === 'true') return; // what it opened is on screen
    const { left, bottom } = node.getBoundingClientRect();
    tip.show(left, bottom - 8, term.name, [], `${term.says} ${term.how}`.trim());
  };
  const hide = () => {
    clearTimeout(timer);
    tip.hide();
  };
  const later = (event) => {
    hide();
    const node = event.target.closest?.('[data-term]');
    if (node) timer = setTimeout(() => show(node), HOVER_MS);
  };
  const tapped = (event) => {
    const node = event.pointerType === 'mouse' ? null : event.target.closest?.('[data-term]');
    if (node) show(node);
    else hide();
  };
  const focused = (event) => {
    if (event.target.matches?.('[data-term]:focus-visible')) show(event.target);
  };
  const listeners = { pointerover: later, pointerdown: tapped, focusin: focused, focusout: hide };
  for (const [name, listener] of Object.entries(listeners)) root.addEventListener(name, listener);
  return () => {
    hide();
    for (const [name, listener] of Object.entries(listeners)) root.removeEventListener(name, listener);
  };
}
