/**
 * What becomes of an answer: right, to be tried again, or, for a guessed token, how the model had thought of it.
 *
 * Nothing that is right stands in the page: a number is a field of the live record, and a guess is held against the step that
 * is taken for it.
 */

import { say } from '../drawing/say.js';
import { fieldOf } from './fields.js';

/**
 * @param {string|number|null} answer what was typed, which choice was pressed; null: show it
 * @param {object} scene of the lesson @param {object} values of the step where it ends, as fieldOf takes them
 * @param {import('./lesson_acts.js').LessonActs} acts for the act that follows an answer
 * @returns {Promise<{refused?: boolean, words: string, isRight?: boolean|null, guess?: object}>}
 */
export async function answerTo(answer, scene, values, acts) {
  const { kind } = scene.ask;
  if (kind === 'guess') return guessed(answer, scene, values.store);
  const found = kind === 'choose' ? chosen(answer, scene.ask) : await numbered(answer, scene, values, acts);
  if (!found.refused && scene.you && !acts.isDone(scene.you, scene.end)) await acts.perform(scene.you);
  return found;
}

function chosen(choice, { choices }) {
  if (choice === null) return { words: say('lesson.shown'), isRight: null };
  return choices[choice].right ? { words: say('lesson.right'), isRight: true } : { refused: true, words: say('lesson.not_that') };
}

/** What follows a number is done before it is compared: the number is about that. Then there is no second try. */
async function numbered(text, { ask, you }, values, acts) {
  const typed = text === null ? null : typedNumber(text);
  if (text !== null && typed === null) return { refused: true, words: say('lesson.no_number', { text }) };
  if (you) await acts.perform(you);
  const { number, text: right } = rightNumber(ask.answer, values);
  if (typed !== null && isNear(typed, number, ask.within)) return { words: say('lesson.right_number', { right }), isRight: true };
  if (typed === null || you) return { words: say('lesson.it_is', { right }), isRight: typed === null ? null : false };
  return { refused: true, words: say('lesson.not_that_number', { text }) };
}

function rightNumber(answer, values) {
  if (typeof answer === 'number') return { number: answer, text: String(answer) };
  const field = fieldOf(answer, values);
  if (!field) throw new Error(say('lesson.no_value', { name: answer }));
  return field;
}

/** The step is taken, and the model says what it had thought of the token that was typed. */
async function guessed(text, { end }, store) {
  const step = end.steps;
  if (store.newest < step) {
    await store.send('ask', { step: store.newest, text }); // what is no token is refused before anything is given away
    store.follow();
    await store.send('step');
  }
  const { readings } = await store.send('ask', { step, text });
  const guess = readings.reduce((best, reading) => (reading.rank < best.rank ? reading : best));
  store.pieces.set(guess.token_id, guess.piece);
  return { words: say('lesson.guessed'), isRight: null, guess };
}

const UNITS = { '%': 0.01, kb: 1e3, mb: 1e6, gb: 1e9 };

/** A typed number, "46 %" as 0.46, "1,024 B" as 1024, "230 kB" as 230000; null where it is none. */
export function typedNumber(text) {
  const found = text.replaceAll(',', '').trim().toLowerCase().match(/^([-+]?\d*\.?\d+(?:e[-+]?\d+)?)\s*(%|[kmg]b)?/);
  return found ? Number(found[1]) * (UNITS[found[2]] ?? 1) : null;
}

/** @param {number} within a share of the right value: 0.1 is 10 % */
export function isNear(typed, right, within) {
  return Math.abs(typed - right) <= Math.abs(right) * within + 1e-9;
}
