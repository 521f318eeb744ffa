/**
 * What the repetition penalty did to EOS tokens.
 *
 * The penalty acts on every token of the prompt, and a chat template ends each turn with an
 * EOS token. So it also makes the end of the answer less likely, and answers run on.
 */

import { say } from '../../drawing/say.js';
import { formatNumber } from '../../drawing/format.js';
import { plainToken } from '../../drawing/pieces.js';

/** One sentence for every EOS token that the penalty acted on in this step; '' where it did on none. */
export function penalisedWords(step, pieces) {
  return (step.penalised_ends ?? [])
    .map(({ token_id: id, logit, penalised, in_prompt: inPrompt }) => {
      const values = { penalty: formatNumber(step.sampling.repetition_penalty), token: plainToken(pieces.get(id)), id, from: formatNumber(logit), to: formatNumber(penalised) };
      if (penalised === logit) return say('penalised_ends.left', values);
      if (penalised < logit) return inPrompt ? say('penalised_ends.lowered_prompt', values) : say('penalised_ends.lowered_generated', values);
      return inPrompt ? say('penalised_ends.raised_prompt', values) : say('penalised_ends.raised_generated', values);
    })
    .join(' ');
}
