/** Names of tokens for sentences of one line. */

import { quotedToken } from './pieces.js';

/** “ cat”, “⏎” for a newline, or the name of a special or partial token. */
export const namedToken = quotedToken;

/** “ cat” at 3 */
export function tokenAtPosition(tokens, position) {
  return `${quotedToken(tokens[position])} at ${position.toLocaleString('en-US')}`;
}
