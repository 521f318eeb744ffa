/** The help sheet: keys, the two ways to go back, the signs for what cannot be seen, and the colours. */

import { make } from '../drawing/dom.js';
import { openSheet } from '../drawing/overlay.js';
import { KEY_MAP } from './keys.js';
import { TOKEN_SIGNS } from '../drawing/pieces.js';
import { ROLE_WORDS } from '../store/roles.js';

function definitions(rows) {
  return make('dl.facts', {}, ...rows.flatMap(([term, words]) => [make('dt', {}, term), make('dd', {}, words)]));
}

export function openHelp(root) {
  openSheet(root, { title: 'Keys and signs', name: 'help' }, (body) =>
    body.append(
      definitions(KEY_MAP.map(({ shown, says }) => [make('kbd', {}, shown), says])),
      make('h3', {}, 'Looking back and rewinding'),
      make(
        'p',
        {},
        'Looking back (←, →, the scrubber, a click on a token) shows a recorded step and changes nothing. ' +
          'Rewind drops the later steps from the cache and from the run. Fork keeps them in a branch of their own.',
      ),
      make('h3', {}, 'Signs inside tokens'),
      definitions(
        TOKEN_SIGNS.map(({ text, kind, meaning }) => [make(`span.token-text.sign-${kind}`, {}, text), meaning]),
      ),
      make('h3', {}, 'Where a token came from'),
      definitions([
        ...Object.entries(ROLE_WORDS).map(([role, words]) => [
          make('span.legend-role', { data: { role } }, make('i'), role),
          words,
        ]),
        [
          make('span.legend-role', { data: { role: 'new' } }, make('i'), 'dashed'),
          'the token this step sampled: not in the cache until it is fed',
        ],
      ]),
    ),
  );
}
