/**
 * Following a class: the leader's looks on this screen, and a bar that says so, with the way out and back.
 *
 * Looking around is free until the leader moves. Nothing here changes the leader's run.
 *
 * For tests: .follow-bar[data-state=follows|ended|left], .leave-class, .return-to-class
 */

import { make, setChildren, setText } from '../drawing/dom.js';
import { say } from '../drawing/say.js';
import { AnswerClass } from './ask_class.js';
import { spelledCode } from './lead.js';

export class FollowBar {
  /** @param {{presenter: object, windows: Record<string, {isOpen: boolean, open: () => void, close: () => void}>}} parts */
  constructor(root, place, store, { presenter, windows }) {
    Object.assign(this, { root, store, presenter, windows });
    this.words = make('span');
    this.leave = make('button.small-button.leave-class', { title: say('follow.leave_title'), onclick: () => store.leaveClass() });
    this.back = make('button.small-button.return-to-class', { onclick: () => this.#return() }, say('follow.return'));
    this.forget = make('button.small-button', { onclick: () => this.#forget() }, say('follow.forget'));
    this.ways = make('span.recording-ways');
    this.node = make('p.run-bar.follow-bar', { role: 'status', hidden: true }, this.words, this.ways);
    place.append(this.node);
    this.answers = new AnswerClass(place, store);
  }

  draw(changes) {
    const { lead, left } = this.store.following;
    const state = lead ? (lead.ended ? 'ended' : 'follows') : left ? 'left' : '';
    this.node.hidden = !state;
    this.node.dataset.state = state;
    this.root.toggleAttribute('data-follows', Boolean(lead));
    if (state) this.#say(state, lead?.code ?? left, lead?.ended);
    this.answers.draw();
    if (lead && changes.has('look')) this.#look(this.store.following.look);
  }

  #say(state, code, ended) {
    const words = { follows: say('follow.follows', { code: spelledCode(code) }), ended, left: say('follow.left', { code: spelledCode(code) }) };
    setText(this.words, words[state]);
    setText(this.leave, state === 'ended' ? say('follow.go_on') : say('follow.leave'));
    setChildren(this.ways, state === 'left' ? [this.back, this.forget] : [this.leave]);
  }

  /** What the leader sees: the step, the layer and the head, the panel that fills the screen, the open window. */
  #look({ step, layer, head, presents, window }) {
    const { store, presenter, windows } = this;
    store.select({ step, layer, head });
    if (presents) presenter.prefer(presents);
    if (presents && !presenter.on) presenter.enter();
    if (!presents && presenter.on) presenter.leave();
    for (const [name, one] of Object.entries(windows)) {
      if (name === window && !one.isOpen) one.open();
      if (name !== window && one.isOpen) one.close();
    }
  }

  #return() {
    const code = this.store.following.left;
    this.store.following.remember('');
    location.assign(`${location.pathname}?follow=${code}`);
  }

  #forget() {
    this.store.following.remember('');
    this.draw(new Set());
  }
}
