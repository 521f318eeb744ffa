/**
 * The lessons, one a card: what it teaches, how long it takes, where one stands, and the way in.
 *
 * Progress is this browser's own (step_page/lessons/lesson_progress.js); the server never hears of it.
 *
 * For tests: .lesson-card[data-lesson][data-state=new|begun|done], .lesson-go, .lesson-sheet
 */

import { make } from '../step_page/drawing/dom.js';
import { themeOf } from '../step_page/drawing/palette.js';
import { say } from '../step_page/drawing/say.js';
import { readProgress } from '../step_page/lessons/lesson_progress.js';

/** What the way in says, and to whom it is read out. */
const WAYS = {
  new: (lesson) => [say('lesson_list.start'), say('lesson_list.start_of', lesson)],
  begun: (lesson) => [say('lesson_list.go_on'), say('lesson_list.go_on_of', lesson)],
  done: (lesson) => [say('lesson_list.again'), say('lesson_list.again_of', lesson)],
};

function card(lesson, progress) {
  const state = !progress ? 'new' : progress.done ? 'done' : 'begun';
  const scene = state === 'begun' ? progress.scene : 1;
  const [way, wayOf] = WAYS[state](lesson);
  const stands = { new: null, begun: () => say('lesson_list.at', progress), done: () => `✓ ${say('lesson_list.done')}` }[state];
  const facts = [say('lesson_list.minutes', lesson), say('lesson_list.scenes', lesson)];
  return make(
    'li.lesson-card',
    { data: { lesson: lesson.id, state } },
    make('h2', {}, lesson.title),
    make('p.lesson-summary', {}, lesson.summary),
    make('p.lesson-facts', {}, facts.join(' · '), stands ? make('b', {}, ` · ${stands()}`) : null),
    make(
      'div.lesson-links',
      {},
      make('a.lesson-go', { href: `./?lesson=${lesson.id}&scene=${scene}`, 'aria-label': wayOf }, way),
      lesson.sheet
        ? make('a.lesson-sheet', { href: `./lessons/${lesson.id}/sheet`, target: '_blank', rel: 'noopener', 'aria-label': say('lesson_list.sheet_of', lesson) }, say('lesson_list.sheet'))
        : null,
    ),
    make('i.lesson-done', { 'aria-hidden': 'true', style: `--done:${progress ? (progress.done ? 1 : progress.most / progress.of) : 0}` }),
  );
}

export default function lessonList({ data, parentElement }) {
  const root = parentElement.querySelector('.lessons-root') ?? parentElement.appendChild(make('div.lessons-root'));
  root.dataset.theme = themeOf(root);
  const progress = readProgress();
  root.replaceChildren(make('ol.lesson-cards', {}, ...data.lessons.map((lesson) => card(lesson, progress[lesson.id]))));
}
