/**
 * The "numbers checked" badge and what stands behind it: live comparisons against independent ways to get the same number.
 *
 * It can fail, and then it is red. Checks are true for the step they were made at; the badge says which.
 *
 * For tests: .checks-badge[data-state=unknown|running|passed|failed], .check-row[data-passed]
 */

import { say } from '../drawing/say.js';
import { make, icon } from '../drawing/dom.js';
import { waitLine } from './wait_line.js';
import { openSheet } from '../drawing/overlay.js';
import { formatNumber } from '../drawing/format.js';

const BADGE = {
  unknown: [say('checks.unknown'), 'alert'],
  running: [say('checks.checking'), 'alert'],
  passed: [say('checks.passed'), 'check'],
  failed: [say('checks.failed'), 'cross'],
};

function checkRow(check) {
  return make(
    'li.check-row',
    { data: { passed: check.passed } },
    make('span.check-sign', {}, icon(check.passed ? 'check' : 'cross', 18)),
    make('div', {}, make('b', {}, check.name), make('p', {}, check.compared)),
    make(
      'span.check-numbers',
      {},
      make('b', {}, formatNumber(check.difference)),
      ` ${check.unit}`,
      make(
        'small',
        {},
        check.passed ? say('checks.within', { tolerance: formatNumber(check.tolerance) }) : say('checks.more_than', { tolerance: formatNumber(check.tolerance) }),
      ),
    ),
  );
}

export class Checks {
  constructor(root, store) {
    this.root = root;
    this.store = store;
    this.state = 'unknown';
    this.result = null;
    this.button = make('button.checks-badge', { data: { live: '' }, onclick: () => this.open() });
    this.#drawBadge();
  }

  draw(changes) {
    const key = `${this.store.session?.sid}/${this.store.epoch}`;
    if (!changes.has('session') && !changes.has('steps')) return;
    if (this.result && this.result.key !== key) {
      this.result = null;
      this.state = 'unknown';
      this.#drawBadge();
    }
  }

  #drawBadge() {
    const [words, sign] = BADGE[this.state];
    this.button.dataset.state = this.state;
    this.button.replaceChildren(icon(sign, 15), words);
    this.button.title = this.result
      ? say('checks.after', { step: this.result.step })
      : say('checks.title');
  }

  open() {
    this.sheet = openSheet(
      this.root,
      {
        title: say('checks.heading'),
        name: 'checks',
        hint: say('checks.hint'),
      },
      () => {},
    );
    this.#drawSheet();
    if (!this.result && this.state !== 'running' && this.store.steps.length) this.run();
  }

  async run() {
    const { store } = this;
    const made = { key: `${store.session?.sid}/${store.epoch}`, step: store.newest };
    this.state = 'running';
    this.waiting = waitLine(store, say('checks.running'));
    this.#drawBadge();
    this.#drawSheet();
    try {
      const answer = await store.send('check');
      this.result = { ...made, checks: answer.checks ?? answer };
      this.state = this.result.checks.every((check) => check.passed) ? 'passed' : 'failed';
    } catch (error) {
      this.result = null;
      this.state = 'unknown';
      this.error = error.message;
    }
    this.#drawBadge();
    this.#drawSheet();
    this.error = null;
  }

  #drawSheet() {
    if (!this.sheet?.dialog.isConnected) return;
    const { body } = this.sheet;
    if (this.error) return body.replaceChildren(make('p.error-words', {}, this.error), this.#again());
    if (!this.store.steps.length)
      return body.replaceChildren(
        make('p.empty-words', {}, say('checks.empty')),
      );
    if (!this.result) return body.replaceChildren(this.waiting);
    const { checks, step } = this.result;
    const failed = checks.filter((check) => !check.passed).length;
    const verdict = failed
      ? say('checks.differ', { failed, all: checks.length })
      : say('checks.agree', { all: checks.length, step });
    return body.replaceChildren(
      make('p.verdict', { data: { passed: String(!failed) } }, verdict),
      make('ul.check-list', {}, ...checks.map(checkRow)),
      this.#again(),
    );
  }

  #again() {
    return make('button', { onclick: () => this.run() }, say('checks.again'));
  }
}
