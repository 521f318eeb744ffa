/**
 * Sampling settings by name, the seed, and the model's own generation settings, shown and applied only when asked for.
 *
 * Changing them never redraws a token that was drawn: they hold from the next step on.
 *
 * For tests: .sampling-button, .preset[data-preset][aria-pressed], input[name=seed], .dice, .apply-defaults,
 * .solo-switch[aria-checked]
 */

import { say } from '../drawing/say.js';
import { make, icon } from '../drawing/dom.js';
import { switchLine } from './switch.js';
import { Popover } from '../drawing/overlay.js';

const SETTINGS = ['temperature', 'top_k', 'top_p', 'min_p', 'repetition_penalty'];
const OFF = { temperature: 1, top_k: 0, top_p: 1, min_p: 0, repetition_penalty: 1 };
const MOST_DICE = 2 ** 31;

/** The preset these settings are, or null. */
export function presetOf(presets, sampling) {
  if (!sampling) return null;
  const same = (preset) => SETTINGS.every((name) => preset[name] === sampling[name]);
  return Object.keys(presets).find((name) => same(presets[name])) ?? null;
}

/** "greedy", "temperature 0.7, top-k 50", "nothing changed" */
function settingsInWords(sampling) {
  if (sampling.temperature === 0) return say('settings.greedy');
  const changed = SETTINGS.filter((name) => sampling[name] !== OFF[name]);
  return (
    changed.map((name) => `${name.replaceAll('_', ' ')} ${sampling[name]}`).join(', ') || say('settings.neutral')
  );
}

/** What a generation_config asks for, as our settings; greedy where it does not sample. */
export function samplingOfDefaults(defaults) {
  const chosen = Object.fromEntries(
    SETTINGS.map((name) => [name, typeof defaults[name] === 'number' ? defaults[name] : OFF[name]]),
  );
  return defaults.do_sample === true
    ? chosen
    : { ...OFF, repetition_penalty: chosen.repetition_penalty, temperature: 0 };
}

export class Settings {
  constructor(root, store) {
    this.store = store;
    this.button = make('button.sampling-button', { data: { live: '' }, title: say('settings.title') });
    this.popover = new Popover(
      root,
      this.button,
      {
        title: say('settings.heading'),
        hint: say('settings.hint'),
        name: 'sampling',
        keep: '.transport',
      },
      (body) => this.#build(body),
    );
  }

  draw(changes) {
    if (!changes.has('session') && !changes.has('model') && !changes.has('frame')) return;
    const shown = JSON.stringify([this.store.settings, this.store.model?.id]);
    if (shown === this.shown) return;
    this.shown = shown;
    const { settings, presets } = this.store;
    this.button.hidden = !settings;
    if (!settings) return;
    const name = presetOf(presets, settings.sampling) ?? say('settings.own');
    this.button.replaceChildren(
      icon('tune', 15),
      make('span', {}, name),
      make('small', {}, say('settings.seed_now', { seed: settings.seed, alone: settings.solo ? ', alone' : '' })),
      icon('down', 14),
    );
    const focused = this.popover.node.getRootNode().activeElement?.name === 'seed';
    if (!focused) this.popover.refresh();
  }

  #build(body) {
    const { settings, presets, model } = this.store;
    const now = presetOf(presets, settings.sampling);
    this.said = make('p.form-said', { role: 'status' });
    const list = Object.entries(presets).map(([name, sampling]) =>
      make(
        'button.preset',
        {
          data: { preset: name },
          'aria-pressed': String(name === now),
          onclick: () => this.#send('preset', { name }),
        },
        make('b', {}, name),
        make('small', {}, settingsInWords(sampling)),
      ),
    );
    const own = now ? null : make('p.form-said', {}, say('settings.now', { sampling: settingsInWords(settings.sampling) }));
    body.replaceChildren(
      ...[
        make('div.preset-list', {}, ...list),
        own,
        this.#seed(settings.seed),
        this.#solo(settings.solo),
        this.#defaults(model),
        this.said,
      ].filter(Boolean),
    );
  }

  #seed(now) {
    const input = make('input', { type: 'number', name: 'seed', min: 0, step: 1, value: now });
    const set = (seed) => Number.isSafeInteger(seed) && seed >= 0 && this.#send('settings', { seed });
    input.addEventListener('change', () => set(Number(input.value)));
    return make(
      'div.seed-line',
      {},
      make('label', {}, say('settings.seed'), input),
      make(
        'button.dice',
        { title: say('settings.roll_title'), onclick: () => set(crypto.getRandomValues(new Uint32Array(1))[0] % MOST_DICE) },
        icon('dice'),
        say('settings.roll'),
      ),
      make('small', {}, say('settings.same_seed')),
    );
  }

  /** Rounding depends on who shares a forward: whoever compares bits steps alone. */
  #solo(isOn) {
    return switchLine({
      spec: 'button.solo-switch',
      isOn,
      words: say('settings.alone'),
      says: say('settings.alone_says'),
      onChange: (solo) => this.#send('settings', { solo }),
    });
  }

  #defaults(model) {
    const defaults = Object.entries(model?.defaults ?? {});
    if (!defaults.length)
      return make('p.form-said', {}, say('settings.no_defaults'));
    const wanted = samplingOfDefaults(model.defaults);
    const apply = make(
      'button.apply-defaults',
      { onclick: () => this.#send('settings', { sampling: wanted }) },
      say('settings.apply'),
    );
    return make(
      'section.model-defaults',
      {},
      make('h3', {}, say('settings.defaults_heading')),
      make(
        'dl.facts',
        {},
        ...defaults.flatMap(([name, value]) => [
          make('dt', {}, name),
          make('dd', {}, typeof value === 'string' ? value : JSON.stringify(value)),
        ]),
      ),
      make(
        'div.form-foot',
        {},
        make('span', {}, say('settings.defaults', { wanted: settingsInWords(wanted) })),
        apply,
      ),
    );
  }

  #send(op, args) {
    this.store.setParams(null);
    this.store.send(op, args).catch((error) => (this.said.textContent = error.message));
  }

  destroy() {
    this.popover.destroy();
  }
}
