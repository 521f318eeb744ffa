/**
 * A question to the class: its leader asks and sees the answers come in beside what the model thinks; followers answer, and
 * see all answers once they are revealed.
 *
 * For tests: .ask-class[data-state=none|open|revealed], .ask-next, .ask-form, .ask-reveal, .ask-close, .answer-row[data-answer],
 * .answer-form input, .answer-choice, .answered
 */

import { make, setText } from '../drawing/dom.js';
import { formatProb } from '../drawing/format.js';
import { say } from '../drawing/say.js';
import { tableTwin } from '../drawing/table_twin.js';

const KINDS_OF_QUESTION = [['token', say('ask_class.kind_token')], ['number', say('ask_class.kind_number')], ['choice', say('ask_class.kind_choice')]];

/** How many gave each answer. @param {Array<[string, number]>} answers @param {(answer: string) => number|null} probability */
function histogram(answers, probability) {
  const most = Math.max(1, ...answers.map(([, count]) => count));
  const row = ([answer, count]) => {
    const p = probability(answer);
    const words = p === null ? say('ask_class.count', { n: count }) : say('ask_class.count_model', { n: count, p: formatProb(p) });
    const bars = make('div.answer-bars', {}, make('i', { style: `width: ${(100 * count) / most}%` }), p === null ? null : make('i.is-model', { style: `width: ${100 * p}%` }));
    return make('div.answer-row', { data: { answer } }, make('span.answer-name.token-text', {}, answer), bars, make('span.answer-count', {}, words));
  };
  return make('div.answer-rows', {}, ...answers.map(row));
}

/** The probability that the model gives a token of this text, at the step that was asked about; null: not known. */
function modelOf(store, question) {
  const step = question.kind === 'token' ? store.steps[question.step] : null;
  if (!step) return () => null;
  const { cand_ids: ids, stage_probs: probs } = step.planes;
  const [stages, shown] = probs.shape;
  return (answer) => {
    const at = [...ids.data.slice(0, shown)].findIndex((id) => [answer, ` ${answer}`].includes(store.pieces.get(id)?.text));
    return at < 0 ? null : probs.data[(stages - 1) * shown + at];
  };
}

/** The leader's part, inside the window of leading. */
export class AskClass {
  constructor(store) {
    this.store = store;
    this.key = '';
    this.node = make('section.ask-class');
    this.error = make('p.error-words', { role: 'alert' });
  }

  draw() {
    const { store } = this;
    const question = store.leading?.question ?? null;
    this.node.dataset.state = question ? (question.revealed ? 'revealed' : 'open') : 'none';
    const key = question ? JSON.stringify([question, store.newest]) : 'none';
    if (key === this.key) return;
    this.key = key;
    this.node.replaceChildren(...(question ? this.#asked(question) : this.#offer()), this.error);
  }

  async #send(op, args = {}) {
    setText(this.error, '');
    await this.store.send(op, args).catch((error) => setText(this.error, error.message));
  }

  #offer() {
    const next = make('button.small-button.ask-next', { onclick: () => this.#send('ask_class', { text: say('ask_class.next'), kind: 'token', step: this.store.newest + 1 }) }, say('ask_class.ask_next'));
    return [make('h3', {}, say('ask_class.title')), next, make('details', {}, make('summary', {}, say('ask_class.own')), this.#form())];
  }

  #form() {
    const text = make('input', { type: 'text', maxLength: 300, 'aria-label': say('ask_class.text'), placeholder: say('ask_class.text') });
    const kind = make('select', { 'aria-label': say('ask_class.kind') }, ...KINDS_OF_QUESTION.map(([value, words]) => make('option', { value }, words)));
    const choices = make('textarea', { rows: 3, 'aria-label': say('ask_class.choices'), placeholder: say('ask_class.choices'), hidden: true });
    kind.addEventListener('change', () => (choices.hidden = kind.value !== 'choice'));
    const form = make('form.ask-form', {}, text, kind, choices, make('button', { type: 'submit' }, say('ask_class.ask')));
    form.addEventListener('submit', (event) => {
      event.preventDefault();
      const given = kind.value === 'choice' ? choices.value.split('\n').map((line) => line.trim()).filter(Boolean) : [];
      this.#send('ask_class', { text: text.value, kind: kind.value, choices: given });
    });
    return form;
  }

  #asked(question) {
    const { text, revealed, answered, answers } = question;
    const probability = modelOf(this.store, question);
    const rows = answers.map(([answer, count]) => [answer, count, probability(answer) === null ? '' : formatProb(probability(answer))]);
    const columns = [say('ask_class.answer'), say('ask_class.given'), say('ask_class.model')];
    return [
      make('h3', {}, text),
      make('p.answered', { role: 'status' }, say('ask_class.answered', { n: answered })),
      histogram(answers, probability),
      make('div.lead-ways', {},
        revealed ? null : make('button.primary.ask-reveal', { onclick: () => this.#send('reveal') }, say('ask_class.reveal')),
        make('button.small-button.ask-close', { onclick: () => this.#send('ask_no_more') }, say('ask_class.close'))),
      make('details', {}, make('summary', {}, say('panel.table')), tableTwin(columns, rows, text)),
    ];
  }
}

/** A follower's part, under the bar that says whose run it is. */
export class AnswerClass {
  constructor(place, store) {
    this.store = store;
    this.key = '';
    this.mine = null;
    this.node = make('section.run-bar.answer-class', { hidden: true, 'aria-label': say('ask_class.title') });
    place.append(this.node);
  }

  draw() {
    const { lead, question } = this.store.following;
    const shown = lead && !lead.ended ? question : null;
    this.node.hidden = !shown;
    const key = JSON.stringify(shown && { ...shown, answered: 0 });
    if (key === this.key) return;
    this.key = key;
    if (!shown) return;
    this.said = make('p.answered', { role: 'status' });
    const answer = shown.revealed ? histogram(shown.answers, modelOf(this.store, shown)) : shown.kind === 'choice' ? this.#choices(shown) : this.#form(shown);
    this.node.replaceChildren(make('b', {}, shown.text), answer, this.said);
  }

  #choices({ choices }) {
    return make('div.answer-choices', {}, ...choices.map((one) => make('button.small-button.answer-choice', { onclick: () => this.#answer(one, one) }, one)));
  }

  #form({ kind }) {
    const isNumber = kind === 'number';
    const input = make('input', { type: 'text', inputMode: isNumber ? 'decimal' : 'text', maxLength: 60, autocomplete: 'off', spellcheck: false, 'aria-label': say('ask_class.yours') });
    const form = make('form.answer-form', {}, input, make('button', { type: 'submit' }, say('ask_class.send')));
    form.addEventListener('submit', (event) => {
      event.preventDefault();
      const number = Number(input.value.replace(',', '.'));
      if (input.value.trim()) this.#answer(isNumber && Number.isFinite(number) ? number : input.value, input.value);
    });
    return form;
  }

  async #answer(answer, words) {
    try {
      await this.store.answerClass(answer);
      setText(this.said, say('ask_class.sent', { answer: words }));
    } catch (error) {
      setText(this.said, error.message);
    }
  }
}
