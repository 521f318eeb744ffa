/** The help sheet: keys, the two ways to go back, the signs for what cannot be seen, and the colours. */

import { say } from '../drawing/say.js';
import { make } from '../drawing/dom.js';
import { openSheet } from '../drawing/overlay.js';
import { KEY_MAP } from './keys.js';
import { TOKEN_SIGNS } from '../drawing/pieces.js';
import { ROLE_WORDS } from '../store/roles.js';

function definitions(rows) {
  return make('dl.facts', {}, ...rows.flatMap(([term, words]) => [make('dt', {}, term), make('dd', {}, words)]));
}

export function openHelp(root) {
  openSheet(root, { title: say('help.heading'), name: 'help' }, (body) =>
    body.append(
      definitions(KEY_MAP.map(({ shown, says }) => [make('kbd', {}, shown), says])),
      make('h3', {}, say('help.back_heading')),
      make(
        'p',
        {},
        say('help.looking_back'),
      ),
      make('h3', {}, say('help.signs_heading')),
      definitions(
        TOKEN_SIGNS.map(({ text, kind, meaning }) => [make(`span.token-text.sign-${kind}`, {}, text), meaning]),
      ),
      make('h3', {}, say('help.roles_heading')),
      definitions([
        ...Object.entries(ROLE_WORDS).map(([role, words]) => [
          make('span.legend-role', { data: { role } }, make('i'), role),
          words,
        ]),
        [
          make('span.legend-role', { data: { role: 'new' } }, make('i'), say('help.dashed')),
          say('help.dashed_is'),
        ],
      ]),
    ),
  );
}
