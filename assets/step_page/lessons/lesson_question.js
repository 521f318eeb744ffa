/**
 * A scene's question: the next token by typing, a choice, or a number.
 *
 * The answer is never typed into a lesson: a number is compared with a field of the live record, and a guessed token with
 * the step that is then taken. A wrong choice or number may be tried again, or the answer be shown.
 *
 * Whoever leads a class may ask it the same.
 *
 * For tests: .ask-lesson, .lesson-ask[data-kind], .lesson-choice[data-state], .lesson-ask input, .lesson-verdict[data-right]
 */

import { make } from '../drawing/dom.js';
import { say } from '../drawing/say.js';
import { spanNodes } from './lesson_text.js';

export class LessonQuestion {
  /**
   * @param {object} ask as the lesson has it @param {(answer: string|number|null) => void} onAnswer null: show it
   * @param {(question: {text: string, kind: string, choices: string[]}) => void} toClass asks everybody who follows
   */
  constructor(ask, onAnswer, toClass) {
    Object.assign(this, { ask, onAnswer, toClass });
    this.verdict = make('p.lesson-verdict', { role: 'status' });
    this.node = make('div.lesson-ask', { data: { kind: ask.kind } }, (this.question = make('p.lesson-question', {}, ...spanNodes(ask.question))));
    const asks = make('button.small-button.ask-lesson', { title: say('ask_class.lesson_title'), onclick: () => this.#askClass() }, say('ask_class.title'));
    this.node.append(ask.kind === 'choose' ? this.#choices() : this.#form(), asks, this.verdict);
  }

  #choices() {
    this.choices = this.ask.choices.map(({ text }, i) =>
      make('button.lesson-choice', { onclick: () => this.onAnswer(i) }, make('span', {}, ...spanNodes(text))),
    );
    return make('div.lesson-choices', {}, ...this.choices);
  }

  /** As it stands here, its values filled in. */
  #askClass() {
    const kind = { guess: 'token', choose: 'choice', number: 'number' }[this.ask.kind];
    this.toClass({ text: this.question.textContent, kind, choices: (this.choices ?? []).map((node) => node.textContent) });
  }

  #form() {
    const isGuess = this.ask.kind === 'guess';
    const label = isGuess ? say('lesson.guess_label') : say('lesson.number_label');
    this.input = make('input', { type: 'text', inputMode: isGuess ? 'text' : 'decimal', autocomplete: 'off', spellcheck: false, maxLength: 60, 'aria-label': label, placeholder: label });
    this.go = make('button', { type: 'submit' }, say('lesson.answer'));
    const form = make('form.lesson-form', {}, this.input, this.go);
    form.addEventListener('submit', (event) => {
      event.preventDefault();
      if (this.input.value.trim() && !this.go.disabled) this.onAnswer(this.input.value);
    });
    return form;
  }

  /** Meanwhile nothing can be answered. */
  wait(isWaiting) {
    for (const node of [this.go, ...(this.choices ?? [])]) if (node) node.disabled = isWaiting;
  }

  /** Not that: it may be tried again. */
  refuse(answer, words) {
    if (this.choices) this.choices[answer].dataset.state = 'wrong';
    this.#say(words, false);
    this.verdict.append(' ', make('button.small-button.lesson-show', { onclick: () => this.onAnswer(null) }, say('lesson.show_answer')));
  }

  /** It is over. @param {boolean|null} isRight null: there is no right and wrong */
  settle(words, isRight) {
    this.wait(true);
    if (this.input) this.input.disabled = true;
    if (this.choices) this.ask.choices.forEach(({ right }, i) => right && (this.choices[i].dataset.state = 'right'));
    this.#say(words, isRight);
  }

  #say(words, isRight) {
    this.verdict.dataset.right = String(isRight);
    this.verdict.replaceChildren(words);
  }
}
