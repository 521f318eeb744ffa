/**
 * Every stop rule after the selected step: armed or not, fired or not, and how near it was; below, the rules to set.
 *
 * The settings hold from the next step on. What the list shows is what was in force when the step was made.
 *
 * For tests: .rule[data-rule][data-state], .stop-form inputs named max_new_tokens, use_end_ids, stop_strings
 */

import { say } from '../../drawing/say.js';
import { make } from '../../drawing/dom.js';
import { takeAway } from '../../picture/take_away.js';
import { formatShare } from '../../drawing/format.js';
import { penalisedWords } from '../next_token/penalised_ends.js';

/** What the glossary says of a rule. */
const RULE_TERMS = {
  end_id: { term: 'EOS token' }, stop_string: { term: 'stop string' }, max_new_tokens: { term: 'max new tokens' },
  context_limit: { term: 'context limit' }, kv_bytes: { term: 'KV cache limit' }, nan: { term: 'NaN' },
  user: { term: 'user stop' }, disconnect: { term: 'disconnect' },
};

function ruleRow(stop, more) {
  const state = stop.fired ? 'fired' : stop.armed ? 'armed' : 'off';
  const near =
    stop.nearness === null || !stop.armed
      ? null
      : make(
          'span.near',
          { title: say('stop_inspector.nearness', { nearness: formatShare(stop.nearness) }) },
          make('i', { style: `width:${Math.min(100, stop.nearness * 100)}%` }),
        );
  return make(
    'li.rule',
    { data: { rule: stop.rule, state } },
    make('span.rule-state', {}, state),
    make('span.rule-label', { tabIndex: 0, data: RULE_TERMS[stop.rule] ?? {} }, stop.label),
    make('span.rule-words', {}, more ? `${stop.state}. ${more}` : stop.state),
    near,
  );
}

/** A stop string as one line of text: line ends and tabs are written \n and \t. */
const escapeLine = (text) =>
  text.replace(/\\/g, '\\\\').replace(/\n/g, '\\n').replace(/\t/g, '\\t').replace(/\r/g, '\\r');
const unescapeLine = (line) =>
  line.replace(/\\(.)/g, (whole, char) => ({ n: '\n', t: '\t', r: '\r', '\\': '\\' })[char] ?? whole);

/** The user's own stop is a rule like the others: it fires with the next token. */
function endButton(store, said) {
  return make(
    'button',
    {
      title: say('stop_inspector.end_title'),
      disabled: !store.steps.length,
      onclick: () => store.send('stop').catch((error) => (said.textContent = error.message)),
    },
    say('stop_inspector.end'),
  );
}

function stopForm(store) {
  const { stop } = store.settings;
  const limit = make('input', { type: 'number', name: 'max_new_tokens', min: 1, step: 1, value: stop.max_new_tokens });
  const ends = make('input', { type: 'checkbox', name: 'use_end_ids', checked: stop.use_end_ids });
  const strings = make('textarea', {
    name: 'stop_strings',
    rows: 2,
    value: (stop.stop_strings ?? []).map(escapeLine).join('\n'),
    placeholder: say('stop_inspector.strings_hint'),
  });
  const said = make('p.form-said', { role: 'status' });
  const form = make(
    'form.stop-form',
    {},
    make(
      'div',
      {},
      make('label', {}, say('stop_inspector.max_new_tokens'), limit),
      make(
        'label.check',
        {},
        ends,
        say('stop_inspector.eos', { ids: (store.model?.end_ids ?? []).join(', ') || 'the model has none' }),
      ),
    ),
    make('label', {}, say('stop_inspector.stop_strings'), strings),
    make('div.form-foot', {}, said, endButton(store, said), make('button.primary', { type: 'submit' }, say('stop_inspector.apply'))),
  );
  form.addEventListener('submit', async (event) => {
    event.preventDefault();
    const wanted = {
      max_new_tokens: Number(limit.value),
      use_end_ids: ends.checked,
      stop_strings: strings.value
        .split('\n')
        .map(unescapeLine)
        .filter((line) => line !== ''),
    };
    try {
      await store.send('settings', { stop: wanted });
      said.textContent = say('stop_inspector.applied');
    } catch (error) {
      said.textContent = error.message;
    }
  });
  return form;
}

/** Takes the list away; its table is every rule's state and words. */
function saveRules(body, store) {
  const rows = () => (store.selected?.stops ?? []).map(({ rule, label, armed, fired, nearness, state }) => [rule, label, fired ? 'fired' : armed ? 'armed' : 'off', nearness === null ? '' : formatShare(nearness), state]);
  return takeAway({
    name: 'stop-rules', title: say('step_page.stop_rules'), picture: () => ({ root: body, parts: [body.firstChild] }),
    table: () => ({ columns: say('stop_inspector.columns').split(', '), rows: rows() }),
  });
}

/** Fill the popover's body; while it is open the form is left alone, somebody may be typing in it. */
export function buildStopInspector(body, store) {
  const step = store.selected;
  const list = step
    ? make(
        'ul.rules',
        { 'aria-label': say('stop_inspector.heading', { step: step.index }) },
        ...step.stops.map((stop) => ruleRow(stop, stop.rule === 'end_id' ? penalisedWords(step, store.pieces) : '')),
      )
    : make('p.empty-words', {}, say('stop_inspector.empty'));
  if (body.firstChild) body.firstChild.replaceWith(list);
  else body.append(list, make('div.rules-save', {}, saveRules(body, store)), stopForm(store));
}
