/**
 * Leads through the live page, scene by scene: brings the run to where a scene needs it, points, waits for the reader's act
 * or answer, and says then what came of it.
 *
 * A scene begins in its state `start` and ends in `end` (explorer/lessons/states.py). Going on brings the run there; going
 * back only looks back. Leaving keeps the run. The scene stands in the address, so a reload goes on and a link leads there.
 */

import { make } from '../drawing/dom.js';
import { say } from '../drawing/say.js';
import { actWords } from './act_words.js';
import { RUN_ACTS } from './lesson_acts.js';
import { keepProgress, readProgress } from './lesson_progress.js';
import { answerTo } from './lesson_answer.js';
import { LessonQuestion } from './lesson_question.js';
import { LessonRail } from './lesson_rail.js';
import { fitsState } from './lesson_state.js';
import { Spotlight } from './places.js';

export class LessonPlayer {
  lesson = null;
  index = 0;
  #wanted = null; // {id, scene}: asked for, and not here yet
  #turn = 0; // of the work for a scene; what an earlier one still does is of no interest
  #isWaiting = false;
  #error = '';
  #done = new Map(); // scene -> {guess}: completed in this visit

  /** @param {HTMLElement} root the page @param {{place: HTMLElement, acts, presenter, weights: () => Float32Array|null}} parts */
  constructor(root, store, { place, acts, presenter, weights }) {
    Object.assign(this, { root, store, acts, presenter, weights });
    this.spotlight = new Spotlight(root);
    this.rail = new LessonRail(place, {
      next: () => this.next(),
      back: () => this.back(),
      leave: () => this.leave(),
      doIt: () => this.#doIt(),
    });
    const asked = store.lesson ?? store.memory.lesson();
    if (asked) this.open(asked.id, asked.scene);
  }

  get isOn() {
    return this.lesson !== null || this.#wanted !== null;
  }

  get scene() {
    return this.lesson.scenes[this.index];
  }

  get isComplete() {
    const { you, ask } = this.scene;
    return this.#done.has(this.index) || !(you || ask);
  }

  /** @param {string} id of a lesson @param {number} scene from 1 */
  async open(id, scene = 1) {
    const wanted = (this.#wanted = { id, scene });
    this.root.dataset.lesson = id;
    this.rail.open();
    try {
      const lesson = await this.store.send('lesson', { id });
      if (this.#wanted !== wanted) return;
      this.lesson = lesson;
      this.#done.clear();
      this.#enter(Math.max(0, Math.min(scene, lesson.scenes.length) - 1), 'open');
    } catch (error) {
      if (this.#wanted !== wanted) return;
      this.leave();
      this.store.notice = error.message;
      this.store.emit(new Set(['notice']));
    }
    this.#wanted = null;
  }

  next() {
    if (!this.lesson) return;
    if (this.index + 1 < this.lesson.scenes.length) this.#enter(this.index + 1, 'next');
    else this.#finish();
  }

  back() {
    if (this.lesson && this.index > 0) this.#enter(this.index - 1, 'back');
  }

  /** @param {'open'|'next'|'back'} how going back only looks back; else the run is brought to where the scene needs it */
  #enter(index, how) {
    this.index = index;
    this.ended = false;
    this.#turn += 1;
    this.#error = '';
    this.acts.begin();
    const { ask } = this.scene;
    this.question = ask && !this.#done.has(index) ? new LessonQuestion(ask, (answer) => this.#answer(answer), (question) => this.#askClass(question)) : null;
    const task = this.question?.node ?? (this.scene.you ? this.rail.act(actWords(this.scene.you)) : null);
    this.rail.show(this.lesson, index, task);
    this.#remember(false);
    if (how === 'back') this.#look();
    else this.#bring(how === 'next');
    this.#changed();
  }

  /** A class sees the question too; what it answers stands in the window of leading. */
  #askClass(question) {
    const { store } = this;
    const step = question.kind === 'token' ? store.newest + 1 : null;
    store.send('ask_class', { ...question, step }).catch((error) => {
      this.#error = error.message;
      this.#changed();
    });
  }

  /** Where one is: in the address, in this window, and as progress in this browser. */
  #remember(done) {
    const { id, scenes } = this.lesson;
    const scene = this.index + 1;
    this.store.lesson = { id, scene };
    this.store.memory.beside({ lesson: id, scene: String(scene) });
    keepProgress(id, { scene, of: scenes.length, done });
  }

  /** The run as the scene needs it: by its own acts where it goes on from the one before, else as a link would. */
  async #bring(isNext) {
    const { store, scene } = this;
    await this.#whileWaiting(async (isWanted) => {
      const acts = scene.do.filter(({ act }) => RUN_ACTS.includes(act));
      if (isNext && this.#canGoOn(acts)) await this.#perform(acts, isWanted);
      else if (!fitsState(store, scene.start)) await this.#bringTo('start');
      if (isWanted()) this.#look();
      await this.#perform(scene.do.filter(({ act }) => !RUN_ACTS.includes(act)), isWanted);
    });
  }

  /** @param {'start'|'end'} at of the scene */
  #bringTo(at) {
    return this.store.send('lesson_run', { id: this.lesson.id, scene: this.index + 1, at });
  }

  /** Whether the run stands where the scene's acts begin. A prefill needs only the settings to be right. */
  #canGoOn(acts) {
    const { store, scene } = this;
    if (scene.before === null || !fitsState(store, scene.before)) return false;
    return store.newest === scene.before.steps || acts.some(({ act }) => act === 'prefill');
  }

  async #perform(actions, isWanted) {
    for (const action of actions) if (isWanted()) await this.acts.perform(action, isWanted);
  }

  /** Looks at the scene's own step, and points at what it speaks of. */
  #look() {
    if (this.scene.start) this.store.select({ step: this.at });
    const panel = this.spotlight.point(this.scene.show);
    if (panel) this.presenter.prefer(panel);
  }

  /**
   * Work for this scene. What goes wrong is said, and nothing more is done once the reader is elsewhere.
   * @param {(isWanted: () => boolean) => Promise<void>} work @returns {Promise<boolean>} whether they are still here
   */
  async #attempt(work) {
    const turn = this.#turn;
    const isWanted = () => this.#turn === turn;
    this.#error = '';
    try {
      await work(isWanted);
    } catch (error) {
      if (isWanted()) this.#error = error.message;
    }
    return isWanted();
  }

  async #whileWaiting(work) {
    this.#wait(true);
    if (await this.#attempt(work)) this.#wait(false);
  }

  #wait(isWaiting) {
    this.#isWaiting = isWaiting;
    this.question?.wait(isWaiting);
    this.#changed();
  }

  /** The scene's own step: where it began, and once it is complete where it ended. */
  get at() {
    const state = (this.isComplete && this.scene.end) || this.scene.start;
    return state?.steps ?? 0;
  }

  /** What the reader is to do, done by the page. */
  async #doIt() {
    await this.#attempt((isWanted) => this.acts.perform(this.scene.you, isWanted));
    this.#changed();
  }

  /** An answer was given, or the right one asked for (null). */
  async #answer(answer) {
    await this.#whileWaiting(async (isWanted) => {
      const found = await answerTo(answer, this.scene, this.#values().end, this.acts);
      if (!isWanted()) return;
      if (found.refused) this.question.refuse(answer, found.words);
      else this.#complete(found.words, found.isRight, { guess: found.guess ?? null });
    });
  }

  #complete(words = '', isRight = null, result = {}) {
    this.#done.set(this.index, result);
    this.question?.settle(words, isRight);
    this.#remember(this.index === this.lesson.scenes.length - 1);
    this.#changed();
  }

  async #finish() {
    const { lesson } = this;
    this.#turn += 1;
    this.ended = true;
    this.#remember(true);
    this.spotlight.point([]);
    const { lessons } = await this.store.send('lessons').catch(() => ({ lessons: [] }));
    const done = readProgress();
    const next = lessons.find(({ id, faults }) => id !== lesson.id && !faults && !done[id]?.done);
    const ways = [
      next ? make('button.primary', { onclick: () => this.open(next.id) }, say('lesson.next_lesson', { title: next.title })) : null,
      make('a.lesson-all', { href: './lessons' }, say('lesson.all')),
      make('button', { onclick: () => this.leave() }, say('lesson.go_on_alone')),
    ];
    if (this.ended) this.rail.end(say('lesson.ended', { title: lesson.title }), ways.filter(Boolean));
  }

  /** The run stays as it is. */
  leave() {
    this.#turn += 1;
    this.lesson = this.#wanted = null;
    this.store.lesson = null;
    this.store.memory.beside({});
    this.spotlight.point([]);
    this.rail.close();
    delete this.root.dataset.lesson;
  }

  #changed() {
    this.store.emit(new Set(['lesson']));
  }

  /** What a scene says at first holds where it began; what it says then, where it ended. */
  #values() {
    const { store, scene } = this;
    const shared = { store, guess: this.#done.get(this.index)?.guess ?? null, weights: this.weights() };
    return { start: { ...shared, at: scene.start?.steps ?? 0 }, end: { ...shared, at: scene.end?.steps ?? 0 } };
  }

  draw() {
    if (!this.lesson || this.ended) return;
    const { scene, acts } = this;
    const isShown = !('beat' in this.root.dataset); // a slow step is under way until its last beat
    const isStill = !this.#isWaiting && isShown && this.store.line.idle && Boolean(this.store.how);
    if (isStill && !this.isComplete && scene.you && !scene.ask) this.#watch(scene, acts);
    this.spotlight.draw();
    this.rail.draw(this.#values(), { isComplete: this.isComplete, isWaiting: this.#isWaiting, notes: this.#notes(isStill) });
  }

  /** Whether the reader has done what was asked. Settings that are near are put right, so that the next scene fits. */
  #watch({ you, end }, acts) {
    if (acts.isDone(you, end)) this.#complete();
    else if (acts.isNear(you)) this.#doIt();
  }

  /** What the reader should know beside the scene: another model, an error, a run that has gone another way. */
  #notes(isStill) {
    const { store, lesson, scene } = this;
    const here = store.model?.name ?? lesson.model;
    const hasStrayed = isStill && !fitsState(store, this.#done.has(this.index) ? scene.end : scene.start);
    const key = JSON.stringify([here, this.#error, hasStrayed, this.#turn]);
    if (key === this.notesKey) return this.notesShown;
    this.notesKey = key;
    const goBack = () => make('button.small-button.lesson-return', { onclick: () => this.#return() }, say('lesson.return'));
    this.notesShown = [
      here === lesson.model ? null : make('p', {}, say('lesson.other_model', { model: lesson.model, here })),
      this.#error ? make('p.error-words', {}, this.#error) : null,
      hasStrayed ? make('p', {}, say('lesson.strayed'), ' ', goBack()) : null,
    ].filter(Boolean);
    return this.notesShown;
  }

  async #return() {
    this.#turn += 1;
    await this.#whileWaiting(async (isWanted) => {
      await this.#bringTo(this.isComplete ? 'end' : 'start');
      if (isWanted()) this.#look();
    });
  }

  destroy() {
    this.#turn += 1;
    this.acts.destroy();
  }
}
