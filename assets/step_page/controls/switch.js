/**
 * A setting that is either on or off, and says what it does in one sentence. It looks on only when it is on.
 *
 * For tests: [role=switch][aria-checked]
 */

import { make } from '../drawing/dom.js';

/** The switch itself: a button that screen readers call a switch. */
export function makeSwitch({ spec, isOn, words, title, onChange }) {
  return make(
    spec,
    {
      role: 'switch',
      'aria-checked': String(isOn),
      title,
      onclick: (event) => onChange(event.currentTarget.getAttribute('aria-checked') !== 'true'),
    },
    make('i.switch-track', { 'aria-hidden': 'true' }),
    make('span.switch-words', {}, words),
  );
}

/** A switch in a form, its sentence beside it. */
export function switchLine({ spec, isOn, words, says, onChange }) {
  return make('div.switch-line', {}, makeSwitch({ spec: `${spec}.switch`, isOn, words, onChange }), make('small', {}, says));
}
