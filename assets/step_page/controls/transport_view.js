/**
 * The transport bar as it looks: a scrubber over the recorded steps and three groups of buttons.
 *
 * After a prefill there is one step and nothing to scrub: the line says what happened instead (prefill_note.js).
 * The groups never look alike: look (plain), run (accent), change the run (outlined in the colour of forcing).
 *
 * For tests: .transport [data-act=first|back|step|slow|play|forward|last|rewind|fork|force|reset|branches|help],
 * .scrubber, .step-counter, .speed
 */

import { make, icon, setText } from '../drawing/dom.js';
import { say } from '../drawing/say.js';
import { SPEEDS } from './play_loop.js';
import { PrefillNote } from './prefill_note.js';

const TRANSPORT_BUTTONS = {
  first: ['first', '', say('transport_view.first_title')],
  back: ['back', '', say('transport_view.back_title')],
  forward: ['forward', '', say('transport_view.forward_title')],
  last: ['last', '', say('transport_view.last_title')],
  step: ['step', say('transport_view.step'), say('transport_view.step_title')],
  slow: ['slow', '', say('turn.button_title')],
  play: ['play', say('transport_view.play'), say('transport_view.play_title')],
  rewind: ['rewind', say('transport_view.rewind'), say('transport_view.rewind_title')],
  fork: ['fork', say('transport_view.fork'), say('transport_view.fork_title')],
  force: ['force', say('transport_view.force'), say('transport_view.force_title')],
  reset: ['reset', say('transport_view.reset'), say('transport_view.reset_title')],
  branches: ['branches', '1', say('transport_view.branches_title')],
};

const MOST_TICKS = 80;

export class TransportView {
  /** @param {(act: string) => void} onAct @param {import('./play_loop.js').PlayLoop} loop */
  constructor(store, onAct, loop) {
    this.store = store;
    this.onAct = onAct;
    this.loop = loop;
    this.buttons = {};
    this.words = {};
    const row = make('div.transport-row', {}, this.#lookGroup(), this.#runGroup(), this.#changeGroup());
    this.nodes = [this.#scrubber(), row];
  }

  #button(act, classes = '', ...more) {
    const [sign, words, says] = TRANSPORT_BUTTONS[act];
    this.words[act] = words ? make('span.button-words', {}, words) : null;
    const node = make(
      `button${classes}`,
      { title: says, 'aria-label': words ? null : says, data: { act }, onclick: () => this.onAct(act) },
      icon(sign),
      this.words[act],
      ...more,
    );
    this.buttons[act] = node;
    return node;
  }

  #group(name, label, ...nodes) {
    return make(`div.transport-group.${name}`, { role: 'group', 'aria-label': label }, ...nodes);
  }

  #scrubber() {
    const label = say('transport_view.scrubber');
    this.range = make('input.scrubber', { type: 'range', min: 0, max: 0, step: 1, value: 0, 'aria-label': label });
    this.range.addEventListener('input', () => this.store.select({ step: Number(this.range.value) }));
    this.ticks = make('div.scrubber-ticks', { 'aria-hidden': 'true' });
    this.note = new PrefillNote(this.store, () => this.onAct('tour'));
    return make('div.scrubber-box', {}, this.ticks, this.range, this.note.node);
  }

  #lookGroup() {
    this.counter = make('output.step-counter', { 'aria-live': 'off' });
    const before = [this.#button('first', '.square'), this.#button('back', '.square')];
    const after = [this.#button('forward', '.square'), this.#button('last', '.square')];
    return this.#group('look', say('transport_view.look_group'), ...before, this.counter, ...after);
  }

  #runGroup() {
    this.waiting = make('span.waiting-count', { hidden: true, title: say('transport_view.waiting_title') });
    const step = this.#button('step', '.primary', make('kbd', {}, say('transport_view.space')), this.waiting);
    const slow = this.#button('slow', '.square');
    return this.#group('run', say('transport_view.run_group'), step, slow, this.#button('play', '', make('kbd', {}, 'P')), this.#speed());
  }

  #speed() {
    const notch = SPEEDS.indexOf(this.loop.speed);
    const range = {
      type: 'range',
      min: 0,
      max: SPEEDS.length - 1,
      step: 1,
      value: notch,
      'aria-label': say('transport_view.speed'),
    };
    const speed = (this.speed = make('input.speed', range));
    const shown = make('output.speed-words');
    this.setSpeed = () => {
      this.loop.setSpeed(SPEEDS[Number(speed.value)]);
      setText(shown, this.loop.speed === Infinity ? say('transport_view.max') : `${this.loop.speed}/s`);
      speed.setAttribute('aria-valuetext', shown.textContent);
    };
    speed.addEventListener('input', this.setSpeed);
    this.setSpeed();
    const title = say('transport_view.speed_title');
    return make('label.speed-box', { title }, speed, shown);
  }

  #changeGroup() {
    const help = say('transport_view.help_title');
    const more = { data: { act: 'help' }, title: help, 'aria-label': help, onclick: () => this.onAct('help') };
    return this.#group(
      'change',
      say('transport_view.change_group'),
      this.#button('rewind', '.changing'),
      this.#button('fork'),
      this.#button('force', '.changing'),
      this.#button('reset'),
      this.#button('branches', '.counted'),
      make('button.square', more, '?'),
    );
  }

  draw() {
    const { store, buttons, words } = this;
    const { newest } = store;
    const { step } = store.sel;
    const empty = newest < 0;
    const back = !empty && step < newest;
    setText(this.counter, empty ? say('transport_view.none') : newest ? say('transport_view.step_of', { step, newest }) : say('prefill.counter'));
    this.counter.classList.toggle('is-back', back);
    this.#drawScrubber(step, newest);
    this.note.draw();
    this.#drawRun(empty);
    this.#limitSpeed();
    for (const act of ['first', 'back']) buttons[act].disabled = empty || step === 0;
    for (const act of ['forward', 'last']) buttons[act].disabled = empty || step >= newest;
    for (const act of ['fork', 'force', 'reset']) buttons[act].disabled = !store.hasRun;
    for (const act of ['step', 'play']) buttons[act].disabled = Boolean(store.recording) && !store.isOpened;
    buttons.rewind.disabled = !back;
    setText(words.rewind, back ? say('transport_view.rewind_drops', { steps: newest - step }) : say('transport_view.rewind'));
    const branches = store.session?.branches?.length ?? 0;
    buttons.branches.hidden = branches < 2;
    setText(words.branches, String(branches));
  }

  #drawRun(empty) {
    const { store, buttons, words, loop } = this;
    const waiting = store.line.pending('step') + store.line.pending('prefill');
    setText(words.step, empty ? say('transport_view.prefill') : say('transport_view.step'));
    buttons.step.classList.toggle('is-waiting', waiting > 0);
    buttons.step.classList.toggle('is-finished', Boolean(store.steps.at(-1)?.finish_reason) && !store.isOpened);
    this.waiting.hidden = waiting < 2;
    setText(this.waiting, String(waiting));
    if (buttons.play.ariaPressed === String(loop.playing)) return;
    buttons.play.ariaPressed = String(loop.playing);
    buttons.play.firstChild.replaceWith(icon(loop.playing ? 'pause' : 'play'));
    setText(words.play, loop.playing ? say('transport_view.pause') : say('transport_view.play'));
  }

  /** Offer only speeds that a shared server grants. */
  #limitSpeed() {
    const most = this.store.limits.play_rate || Infinity;
    const last = Math.max(0, SPEEDS.filter((speed) => speed <= most).length - 1);
    if (Number(this.speed.max) === last) return;
    this.speed.max = last; // a browser moves the value down with it
    this.setSpeed();
  }

  #drawScrubber(step, newest) {
    this.range.max = Math.max(0, newest);
    this.range.value = Math.max(0, step);
    this.range.disabled = newest < 1;
    this.range.setAttribute('aria-valuetext', say('transport_view.step_of', { step, newest }));
    this.range.style.setProperty('--done', newest > 0 ? `${(100 * step) / newest}%` : '100%');
    const ticks = newest > 0 && newest <= MOST_TICKS ? newest + 1 : 0;
    if (this.ticks.childElementCount === ticks) return;
    this.ticks.replaceChildren(...Array.from({ length: ticks }, () => make('i')));
  }
}
