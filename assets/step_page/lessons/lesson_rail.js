/**
 * What a reader sees of a lesson: a rail beside the panels, a sheet over the bar on phones, subtitles in presenter's mode.
 * The style sheets decide which; the nodes are the same.
 *
 * For tests: .lesson[data-scene][data-complete], .lesson-title, .lesson-text, .lesson-task, .lesson-then, .lesson-note,
 *   .lesson-next, .lesson-back, .lesson-leave
 */

import { icon, make, setChildren, setText } from '../drawing/dom.js';
import { afterWrites } from '../drawing/draw_pass.js';
import { say } from '../drawing/say.js';
import { fillValues, spanNodes } from './lesson_text.js';

export class LessonRail {
  /** @param {HTMLElement} place @param {{next, back, leave, doIt: () => void}} on */
  constructor(place, on) {
    this.on = on;
    this.name = make('b.lesson-name');
    this.count = make('span.lesson-count');
    this.fold = make('button.icon-button.lesson-fold', { 'aria-expanded': 'true', onclick: () => this.#fold() }, icon('down', 16));
    const leave = make('button.icon-button.lesson-leave', { 'aria-label': say('lesson.leave'), title: say('lesson.leave_title'), onclick: on.leave }, icon('cross', 16));
    this.bar = make('i.lesson-bar', { 'aria-hidden': 'true' });
    this.title = make('h2.lesson-title', { tabIndex: -1 });
    this.text = make('div.lesson-text');
    this.task = make('div.lesson-task');
    this.then = make('p.lesson-then', { role: 'status' });
    this.note = make('div.lesson-note', { role: 'status' });
    this.said = make('p.visually-hidden', { 'aria-live': 'polite' });
    this.body = make('div.lesson-body', {}, this.title, this.text, this.task, this.then, this.said);
    this.backButton = make('button.lesson-back', { onclick: on.back, 'aria-keyshortcuts': 'PageUp' }, icon('back', 14), say('lesson.back'));
    this.nextButton = make('button.lesson-next', { onclick: on.next, 'aria-keyshortcuts': 'PageDown' });
    this.node = make(
      'aside.lesson',
      { hidden: true },
      make('header.lesson-head', {}, this.name, this.count, this.fold, leave),
      this.bar,
      this.body,
      this.note,
      make('footer.lesson-foot', {}, this.backButton, this.nextButton),
    );
    this.#sayFold();
    place.before(make('div.lesson-place', {}, this.node));
  }

  #fold() {
    const isFolded = this.node.toggleAttribute('data-folded');
    this.fold.setAttribute('aria-expanded', String(!isFolded));
    this.#sayFold();
  }

  #sayFold() {
    const words = this.node.hasAttribute('data-folded') ? say('lesson.unfold') : say('lesson.fold');
    this.fold.title = words;
    this.fold.setAttribute('aria-label', words);
  }

  /** Before its scenes are here. */
  open() {
    this.node.hidden = false;
    this.node.setAttribute('aria-label', say('lesson.label'));
    setText(this.name, say('lesson.opening'));
  }

  /** @param {object} lesson @param {number} index of the scene @param {Node|null} task what the reader is to do or to answer */
  show(lesson, index, task) {
    const scene = lesson.scenes[index];
    this.node.setAttribute('aria-label', say('lesson.named', { title: lesson.title }));
    setText(this.name, lesson.title);
    setText(this.count, say('lesson.count', { scene: index + 1, of: lesson.scenes.length }));
    this.bar.style.setProperty('--done', String((index + 1) / lesson.scenes.length));
    this.title.textContent = scene.title;
    this.text.replaceChildren(...scene.text.map((spans) => make('p', {}, ...spanNodes(spans))));
    this.task.replaceChildren(...(task ? [task] : []));
    this.then.replaceChildren(...(scene.then ? spanNodes(scene.then) : []));
    this.backButton.disabled = index === 0;
    this.isLast = index === lesson.scenes.length - 1;
    Object.assign(this.node.dataset, { scene: index + 1, waiting: true }); // until it is drawn
    this.body.scrollTop = 0;
    this.isNew = true;
  }

  /** The end of a lesson: what can be done now. */
  end(title, ways) {
    this.title.textContent = title;
    for (const part of [this.text, this.then]) part.replaceChildren();
    this.task.replaceChildren(make('div.lesson-ways', {}, ...ways));
    this.node.dataset.scene = 'end';
    this.nextButton.hidden = true;
  }

  /** @param {{start: object, end: object}} values of the step where the scene begins, and where it ends @param {{isComplete, isWaiting: boolean, notes: Array<Node|string>}} state */
  draw(values, { isComplete, isWaiting, notes }) {
    this.node.dataset.complete = isComplete;
    this.node.dataset.waiting = isWaiting;
    const isSaid = isComplete && this.then.childNodes.length > 0;
    const comes = isSaid && this.then.hidden;
    this.then.hidden = !isSaid;
    this.nextButton.hidden = false;
    this.nextButton.classList.toggle('primary', isComplete);
    setText(this.nextButton, this.isLast ? say('lesson.finish') : isComplete ? say('lesson.next') : say('lesson.skip'));
    setChildren(this.note, notes);
    this.note.hidden = !notes.length;
    fillValues(this.text, values.start);
    fillValues(this.task, values.start);
    fillValues(this.then, values.end);
    if (comes) afterWrites(this, () => { this.body.scrollTop = this.body.scrollHeight; }); // it may stand below the fold
    if (this.isNew && !isWaiting) this.#announce();
  }

  /** A scene is read out once, when its values are there. */
  #announce() {
    this.isNew = false;
    setText(this.said, `${this.title.textContent}. ${this.text.textContent} ${this.task.textContent}`);
  }

  /** What the reader is to press, and a button for those who would rather watch. */
  act(words) {
    return make('div.lesson-act', {}, make('p', {}, words), make('button.small-button.lesson-do', { onclick: this.on.doIt }, say('lesson.do_it')));
  }

  close() {
    this.node.hidden = true;
  }
}
