/** Names of tokens for sentences of one line: what cannot be seen is shown by its sign. */

import { plainToken, quotedToken } from './pieces.js';

/** “ cat”, “⏎” for a newline, or the name of a special or partial token. */
export function namedToken(piece) {
  if (!piece || piece.special || typeof piece.text !== 'string' || !/[^\S ]|^ *$/.test(piece.text)) return quotedToken(piece);
  return `“${plainToken(piece)}”`;
}

/** “ cat” at 3 */
export function tokenAtPosition(tokens, position) {
  return `${namedToken(tokens[position])} at ${position.toLocaleString('en-US')}`;
}
