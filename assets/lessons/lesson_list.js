/**
 * The lessons, one a card: what it teaches, how long it takes, where one stands, and the way in.
 *
 * Progress is this browser's own (step_page/lessons/lesson_progress.js); the server never hears of it.
 *
 * For tests: .lesson-card[data-lesson][data-state=new|begun|done], .lesson-go, .lesson-sheet
 */

import { make } from '../step_page/drawing/dom.js';
import { themeOf } from '../step_page/drawing/palette.js';
import { readProgress } from '../step_page/lessons/lesson_progress.js';

const PLACES_IN_WORDS = /\{(\w+)\}/g;

const filled = (sentence, values) => sentence.replace(PLACES_IN_WORDS, (_, place) => String(values[place]));

function card(lesson, words, progress) {
  const state = !progress ? 'new' : progress.done ? 'done' : 'begun';
  const scene = state === 'begun' ? progress.scene : 1;
  const way = { new: 'start', begun: 'go_on', done: 'again' }[state];
  const stands = state === 'begun' ? filled(words.at, { scene: progress.scene, of: progress.of }) : words.done;
  const facts = [filled(words.minutes, lesson), filled(words.scenes, lesson)];
  return make(
    'li.lesson-card',
    { data: { lesson: lesson.id, state } },
    make('h2', {}, lesson.title),
    make('p.lesson-summary', {}, lesson.summary),
    make('p.lesson-facts', {}, facts.join(' · '), state === 'new' ? null : make('b', {}, ` · ${state === 'done' ? '✓ ' : ''}${stands}`)),
    make(
      'div.lesson-links',
      {},
      make('a.lesson-go', { href: `./?lesson=${lesson.id}&scene=${scene}`, 'aria-label': filled(words[`${way}_of`], lesson) }, words[way]),
      lesson.sheet
        ? make('a.lesson-sheet', { href: `./lessons/${lesson.id}/sheet`, target: '_blank', rel: 'noopener', 'aria-label': filled(words.sheet_of, lesson) }, words.sheet)
        : null,
    ),
    make('i.lesson-done', { 'aria-hidden': 'true', style: `--done:${progress ? (progress.done ? 1 : progress.most / progress.of) : 0}` }),
  );
}

export default function lessonList({ data, parentElement }) {
  const root = parentElement.querySelector('.lessons-root') ?? parentElement.appendChild(make('div.lessons-root'));
  root.dataset.theme = themeOf(root);
  const progress = readProgress();
  root.replaceChildren(make('ol.lesson-cards', {}, ...data.lessons.map((lesson) => card(lesson, data.words, progress[lesson.id]))));
}
