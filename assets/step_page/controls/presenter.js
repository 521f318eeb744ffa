/**
 * Presenter's mode: the tokens, the loop and one panel fill the screen, in type that is read from the back row.
 *
 * It shows less, and nothing else: the run, the keys and what is looked at are the same. Streamlit's menu is taken out of
 * sight and out of the way of Tab (assets/app.css), so nothing that has the focus is ever covered.
 *
 * For tests: .loupe[data-presents=<panel>], .present-button, .stage-bar button[data-panel], .stage-leave, .stage-said
 */

import { icon, make, setText } from '../drawing/dom.js';
import { say } from '../drawing/say.js';

const FIRST_SHOWN = 'next';

export class Presenter {
  /**
   * @param {HTMLElement} root the page
   * @param {HTMLElement} place where the choice of panels goes
   * @param {Array<{name: string, title: string, card: HTMLElement}>} panels in the order of the number keys
   */
  constructor(root, place, panels) {
    this.root = root;
    this.panels = panels;
    this.chosen = FIRST_SHOWN;
    this.button = make(
      'button.quiet.present-button',
      { title: say('present.button_title'), onclick: (event) => this.toggle(event.detail === 0) },
      icon('screen', 15),
      make('span', {}, say('present.button')),
    );
    this.choices = panels.map(({ name, title }, i) =>
      make(
        'button.stage-panel',
        { data: { panel: name }, 'aria-keyshortcuts': String(i + 1), onclick: () => this.choose(name) },
        make('kbd', {}, String(i + 1)),
        title,
      ),
    );
    this.leaveButton = make('button.stage-leave', { onclick: () => this.leave() }, say('present.leave'), make('kbd', {}, say('presenter.esc')));
    this.said = make('p.visually-hidden.stage-said', { role: 'status' });
    const choice = make('div.stage-panels', { role: 'group', 'aria-label': say('present.panels') }, ...this.choices);
    this.bar = make('div.stage-bar', { hidden: true }, choice, this.leaveButton);
    place.append(this.bar, this.said);
  }

  get on() {
    return 'presents' in this.root.dataset;
  }

  /** @param {boolean} byKeyboard the focus is on the button, which is about to disappear */
  toggle(byKeyboard = false) {
    if (this.on) this.leave();
    else this.enter(byKeyboard);
  }

  enter(byKeyboard = false) {
    this.bar.hidden = false;
    document.documentElement.dataset.loupePresents = '';
    this.#show(this.chosen);
    this.#say(say('present.entered', { panel: this.#title }));
    if (byKeyboard) this.leaveButton.focus({ focusVisible: true });
  }

  leave() {
    const hadFocus = this.bar.contains(this.root.getRootNode().activeElement);
    this.close();
    this.#say(say('present.left'));
    if (hadFocus) this.button.focus();
  }

  /** Show a panel, by its name. */
  choose(name) {
    this.chosen = name;
    this.#show(name);
    this.#say(this.#title);
  }

  /** Show a panel from now on, without a word: whoever leads through the page has chosen it. */
  prefer(name) {
    this.chosen = name;
    if (this.on) this.#show(name);
  }

  /** Show a panel for a while, without choosing it; null shows the chosen one again. */
  lend(name) {
    if (this.on) this.#show(name ?? this.chosen);
  }

  /** @returns {false | void} false: the key is not ours now */
  chooseByKey(key) {
    const panel = this.panels[Number(key) - 1];
    if (!this.on || !panel) return false;
    return this.choose(panel.name);
  }

  get #title() {
    return this.panels.find(({ name }) => name === this.chosen).title;
  }

  #show(shown) {
    this.root.dataset.presents = shown;
    for (const { name, card } of this.panels) card.classList.toggle('is-presented', name === shown);
    for (const button of this.choices) button.setAttribute('aria-pressed', String(button.dataset.panel === shown));
  }

  #say(words) {
    setText(this.said, words);
  }

  /** Back to the whole page, without a word. */
  close() {
    this.bar.hidden = true;
    delete this.root.dataset.presents;
    delete document.documentElement.dataset.loupePresents;
    for (const { card } of this.panels) card.classList.remove('is-presented');
  }

  draw() {}

  destroy() {
    this.close();
  }
}
