/**
 * What the transport bar and the keys do: look along the recorded steps, draw new ones, change the run.
 *
 * Every press of Step is one command; presses that come faster than steps are counted, not dropped, up to 48.
 * Looking back changes nothing, rewinding drops steps. Step always draws a new token at the end.
 */

import { make } from '../drawing/dom.js';
import { say } from '../drawing/say.js';
import { Popover } from '../drawing/overlay.js';
import { listenToKeys } from './keys.js';
import { PlayLoop } from './play_loop.js';
import { TransportNote } from './transport_note.js';
import { TransportView } from './transport_view.js';
import { buildBranches } from './branches.js';
import { openForce } from './force_dialog.js';
import { openCompare } from '../compare/compare_sheet.js';
import { openHelp } from './help.js';

const KEYED = ['step', 'slow', 'play', 'back', 'forward', 'first', 'last', 'force', 'undo', 'help'];
const MOST_SEED = 2 ** 31;

export class Player {
  /**
   * @param {import('./prompt.js').PromptRow} prompt @param {import('./presenter.js').Presenter} presenter
   * @param {import('./slow_step.js').SlowStep} slowStep @param {() => void} openStops
   */
  constructor(page, root, store, { prompt, presenter, slowStep, openStops }) {
    this.store = store;
    this.page = page;
    this.presenter = presenter;
    this.slowStep = slowStep;
    this.prompt = prompt;
    this.loop = new PlayLoop(
      store,
      () => this.draw(),
      (message) => this.note.say(message, 'error'),
    );
    this.note = new TransportNote(store, prompt, openStops);
    prompt.onTyped = () => this.draw();
    this.view = new TransportView(store, (act) => this.act(act), this.loop);
    root.append(this.note.node, ...this.view.nodes);
    const words = { title: say('player.branches'), hint: say('player.branches_hint'), name: 'branches', side: 'above' };
    this.branches = new Popover(page, this.view.buttons.branches, words, (body, close) =>
      buildBranches(page, body, store, close),
    );
    this.stopKeys = listenToKeys(page, {
      ...Object.fromEntries(KEYED.map((act) => [act, () => this.act(act)])),
      present: () => presenter.toggle(),
      panel: (key) => presenter.chooseByKey(key),
      nextScene: () => (this.lessons.isOn ? this.lessons.next() : false),
      sceneBefore: () => (this.lessons.isOn ? this.lessons.back() : false),
      close: () => this.#closeOrPause(),
    });
  }

  /** @type {import('../lessons/lesson_player.js').LessonPlayer} set by the page; a clicker's page keys lead through it */
  lessons = null;

  /** One act, from a button or a key. */
  act(act) {
    const { store } = this;
    const moves = { first: 0, back: store.sel.step - 1, forward: store.sel.step + 1, last: store.newest };
    if (act in moves) {
      if (act !== 'last') this.loop.pause();
      return store.select({ step: moves[act] });
    }
    if (act === 'branches') return undefined; // its popover listens by itself
    if (act === 'help') return openHelp(this.page);
    if (act === 'tour') return this.lessons.open('tour');
    if (store.isOpened) return this.#inRecording(act);
    if (store.recording) return this.note.say(say('first.not_yet'), 'hint');
    if (act === 'undo') return this.#undo();
    if (act === 'step') return this.#step();
    if (act === 'slow') return this.#slow();
    if (act === 'play') return this.#play();
    return store.steps.length ? this.#change(act) : this.note.say(say('player.prefill_first'), 'hint');
  }

  /** In a recording, Step goes to the next recorded step, and Play from step to step. */
  #inRecording(act) {
    const { store } = this;
    if (act === 'play') return this.loop.toggle();
    if (act !== 'step') return this.note.say(say('recording.not_here'), 'hint');
    this.loop.pause();
    if (store.sel.step === store.newest) return this.note.say(say('recording.end'), 'hint');
    return store.select({ step: store.sel.step + 1 });
  }

  #step() {
    this.loop.pause();
    this.slowStep.forget();
    if (this.#isOpening) return undefined;
    if (!this.store.steps.length) return this.prompt.prefill();
    return this.#askStep();
  }

  /** An ordinary step, shown station by station once it has come. The first press prefills, as with Step. */
  #slow() {
    const { store } = this;
    const isNext = store.steps.length > 0;
    if (isNext) store.select({ step: store.newest });
    this.#step();
    if (isNext && store.line.pending('step')) this.slowStep.expect();
  }

  #play() {
    const { loop, store } = this;
    if (this.#isOpening) return undefined;
    if (loop.playing) return loop.pause();
    if (store.steps.length) return this.#isOver() || loop.start();
    return this.prompt.prefill().then(() => store.steps.length && loop.start());
  }

  /** The tab's run may be on its way back: a prefill now would take its place. */
  get #isOpening() {
    return !this.store.steps.length && !this.store.how;
  }

  /** The run has ended: the note says why and what can be done, and the eye is drawn to it. */
  #isOver() {
    const { store } = this;
    if (!store.steps.at(-1)?.finish_reason || store.line.pending('settings')) return false;
    store.select({ step: store.newest });
    this.note.nudge();
    return true;
  }

  #askStep() {
    this.store.follow();
    if (!this.#isOver()) this.store.send('step').catch((error) => this.note.say(error.message, 'error'));
  }

  #change(act) {
    this.loop.pause();
    const { store } = this;
    const failed = (error) => this.note.say(error.message, 'error');
    if (act === 'force') return openForce(this.page, store, failed);
    if (act === 'reset') return store.send('reset').catch(failed);
    const answer = store.send(act, { step: store.sel.step });
    return answer.then(() => {
      store.select({ step: store.newest });
      if (act === 'fork') this.#offerWays();
    }, failed);
  }

  #undo() {
    this.loop.pause();
    if (!this.store.undo) return this.note.say(say('player.nothing_to_undo'), 'hint');
    this.store.follow();
    return this.store.send('undo').catch((error) => this.note.say(error.message, 'error'));
  }

  /** A copy goes on like the run it left until something differs: say which it is, and offer what can differ. */
  #offerWays() {
    const { store, note, page } = this;
    const { branches, branch: id } = store.session ?? {};
    const made = branches?.find((branch) => branch.id === id);
    if (!made) return;
    const failed = (error) => note.say(error.message, 'error');
    const way = (words, onclick) => make('button.small-button.way', { onclick }, words);
    const reseed = () => {
      const seed = crypto.getRandomValues(new Uint32Array(1))[0] % MOST_SEED;
      return store.send('settings', { seed }).then(() => note.say(say('player.goes_on', { label: made.label, seed }), 'hint'), failed);
    };
    note.offer(say('player.forked', { label: made.label, at: made.at }), [
      way(say('player.another_seed'), reseed),
      way(say('player.force'), () => openForce(page, store, failed)),
      ...(made.parent ? [way(say('compare.with_parent'), () => openCompare(page, store, made.parent))] : []),
      way(say('player.another_temperature'), () => page.querySelector('.lp-slider input')?.focus({ focusVisible: true })),
    ]);
  }

  #closeOrPause() {
    const open = [...this.page.querySelectorAll('.popover')].find((node) => node.matches(':popover-open'));
    if (open) return open.querySelector('.overlay-head button').click();
    const focused = this.page.getRootNode().activeElement;
    if (focused?.matches('input, textarea')) return focused.blur(); // the keys go to the run again
    if (this.presenter.on) return this.presenter.leave();
    if (!this.loop.playing) return false;
    return this.loop.pause();
  }

  draw(changes = new Set(['frame'])) {
    this.view.draw();
    if (changes.has('session')) this.branches.refresh();
    const { step } = this.store.sel;
    const { newest } = this.store;
    this.note.draw({ back: newest >= 0 && step < newest, step, newest });
  }

  destroy() {
    this.stopKeys();
    this.loop.destroy();
    this.branches.destroy();
  }
}
