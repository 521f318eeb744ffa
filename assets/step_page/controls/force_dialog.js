/**
 * Force a token: replace the one the step drew. It is not in the cache yet, so nothing has to be undone.
 *
 * The text or id typed is asked for first: which token it is, and what probability it had at every stage.
 *
 * For tests: .sheet-force input, .force-candidate[data-id], .force-reading[data-id], .force-go
 */

import { say } from '../drawing/say.js';
import { make } from '../drawing/dom.js';
import { openSheet } from '../drawing/overlay.js';
import { renderToken, quotedToken } from '../drawing/pieces.js';
import { drawnPosition } from '../store/roles.js';
import { formatProb } from '../drawing/format.js';
import { standingNodes } from '../panels/next_token/token_standing.js';

const OFFERED = 12;
const ASK_AFTER_MS = 250;

function candidateButtons(store, step, choose) {
  const ids = step.planes.cand_ids.data;
  const logits = step.planes.cand_logits.data;
  return Array.from(ids.slice(0, OFFERED), (id, i) =>
    make(
      'button.force-candidate',
      {
        data: { id },
        'aria-pressed': String(id === step.draw.token_id),
        onclick: () => choose(id),
      },
      renderToken(make('span'), store.pieces.get(id)),
      make('small', {}, formatProb(Math.exp(logits[i] - step.log_sum_exp))),
    ),
  );
}

/** Ask which tokens the text may be; shows their way through the stages and arms the button with the first. */
async function lookUp(store, step, text, parts) {
  const { said, go } = parts;
  go.disabled = true;
  if (!text) return said.replaceChildren();
  const asked = (parts.asked = Symbol('asked'));
  try {
    const { readings } = await store.send('ask', { step: step.index, text });
    if (parts.asked !== asked) return undefined;
    for (const { token_id: id, piece } of readings) store.pieces.set(id, piece);
    const choose = (id) => {
      parts.chosen = id;
      for (const button of said.children) button.setAttribute('aria-pressed', String(Number(button.dataset.id) === id));
    };
    said.replaceChildren(
      ...readings.map((reading) =>
        make(
          'button.force-reading',
          { type: 'button', data: { id: reading.token_id }, onclick: () => choose(reading.token_id) },
          ...standingNodes(reading, store.model.vocab_size),
        ),
      ),
    );
    choose(readings[0].token_id);
    go.disabled = false;
  } catch (error) {
    if (parts.asked === asked) said.replaceChildren(make('p.form-said', {}, error.message));
  }
  return undefined;
}

export function openForce(root, store, onError) {
  const step = store.selected;
  if (!step) return;
  const later = store.newest - step.index;
  const drawn = quotedToken(store.pieces.get(step.draw.token_id));
  const replaces = say('force_dialog.replaces', { token: drawn, position: drawnPosition(store, step.index), step: step.index });
  const undoes =
    later
      ? say('force_dialog.rewinds_first', { step: step.index, n: later })
      : say('force_dialog.nothing_to_undo');
  const hint = `${replaces} ${undoes}`;
  openSheet(root, { title: say('force_dialog.heading'), name: 'force', hint }, (body, close) => {
    const parts = { chosen: null, asked: null, said: make('div.force-readings', { role: 'status' }) };
    const force = (id) => {
      close();
      store.follow();
      store.send('force', { step: step.index, token_id: id }).catch(onError);
    };
    parts.go = make('button.primary.force-go', { type: 'submit', disabled: true }, say('force_dialog.go'));
    const input = make('input', {
      type: 'text',
      autocomplete: 'off',
      spellcheck: false,
      placeholder: say('force_dialog.placeholder'),
      'aria-label': say('force_dialog.label'),
      autofocus: true,
    });
    let timer = 0;
    input.addEventListener('input', () => {
      clearTimeout(timer);
      parts.go.disabled = true;
      timer = setTimeout(() => lookUp(store, step, input.value, parts), ASK_AFTER_MS);
    });
    const form = make('form.force-form', {}, make('div.force-line', {}, input, parts.go), parts.said);
    form.addEventListener('submit', (event) => {
      event.preventDefault();
      if (!parts.go.disabled) force(parts.chosen);
    });
    body.append(
      make('h3', {}, say('force_dialog.likeliest')),
      make('div.force-candidates', {}, ...candidateButtons(store, step, force)),
      make('h3', {}, say('force_dialog.any')),
      form,
      make('p.empty-words', {}, say('force_dialog.leading_space')),
    );
  });
}
