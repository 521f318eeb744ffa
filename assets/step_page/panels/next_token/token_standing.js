/**
 * Where a token that was asked for stands among all: its rank, raw logit, and its probability after every stage.
 *
 * “mat” and “ mat” are two tokens, and in the middle of a sentence the one with the space
 * is the likely one. So both are shown.
 */

import { say } from '../../drawing/say.js';
import { make } from '../../drawing/dom.js';
import { formatCount, formatNumber, formatProb } from '../../drawing/format.js';
import { renderToken } from '../../drawing/pieces.js';

/** Each stage's label and the token's probability after it; "cut" from the stage on that removed it. */
export function standingChain({ stages, removed_by: removedBy }) {
  let isCut = false;
  return stages.map(({ stage, label, prob }) => {
    isCut ||= label === removedBy;
    return [stage === 'logits' ? say('token_standing.raw') : label, isCut ? 'cut' : formatProb(prob)];
  });
}

/** @returns {Node[]} the token, its id, rank and logit, its way through the stages, and what removed it */
export function standingNodes(reading, vocabulary) {
  const { token_id: id, piece, rank, logit, removed_by: removedBy } = reading;
  const chain = standingChain(reading).flatMap(([label, prob], i) => [
    ...(i ? [make('i', { 'aria-hidden': 'true' }, '→')] : []),
    make('span', {}, `${label} `, make('b', {}, prob)),
  ]);
  return [
    renderToken(make('b'), piece),
    make('span', {}, say('token_standing.id', { id })),
    make('span', {}, say('token_standing.rank_of', { rank: formatCount(rank), vocabulary: formatCount(vocabulary) })),
    make('span', {}, say('token_standing.logit', { value: formatNumber(logit ?? -Infinity) })),
    ...chain,
    ...(removedBy ? [make('span', {}, say('token_standing.removed', { removed_by: removedBy }))] : []),
    ...(piece.known === false ? [make('span', {}, say('token_standing.no_token'))] : []),
  ];
}
