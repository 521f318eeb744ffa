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
  openSheet(root, { title: say('help.keys_and_signs'), name: 'help' }, (body) =>
    body.append(
      definitions(KEY_MAP.map(({ shown, says }) => [make('kbd', {}, shown), says])),
      make('h3', {}, say('help.looking_back_and_rewinding')),
      make(
        'p',
        {},
        say('help.looking_back_the_scrubber_a') +
          say('help.rewind_drops_the_later_steps'),
      ),
      make('h3', {}, say('help.signs_inside_tokens')),
      definitions(
        TOKEN_SIGNS.map(({ text, kind, meaning }) => [make(`span.token-text.sign-${kind}`, {}, text), meaning]),
      ),
      make('h3', {}, say('help.where_a_token_came_from')),
      definitions([
        ...Object.entries(ROLE_WORDS).map(([role, words]) => [
          make('span.legend-role', { data: { role } }, make('i'), role),
          words,
        ]),
        [
          make('span.legend-role', { data: { role: 'new' } }, make('i'), say('help.dashed')),
          say('help.the_token_this_step_sampled'),
        ],
      ]),
    ),
  );
}
