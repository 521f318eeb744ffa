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
      const did = penalised < logit ? 'lowered' : penalised > logit ? 'raised' : 'left';
      return (
        say('penalised_ends.logit', { penalty: formatNumber(step.sampling.repetition_penalty), did }) +
        `${plainToken(pieces.get(id))} (id ${id}) ` +
        (did === 'left' ? 'at 0' : say('penalised_ends.change', { from: formatNumber(logit), to: formatNumber(penalised) })) +
        say('penalised_ends.why', { where: inPrompt ? 'in the prompt' : 'among the generated tokens' })
      );
    })
    .join(' ');
}
