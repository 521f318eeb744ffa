/**
 * Whether the host of the class may read this tab's text. Off until somebody switches it on, and taken back at once.
 *
 * What is shared is what is on screen: prompt and drawn text, without a name. For tests: .share-switch[aria-checked]
 */

import { setText } from '../drawing/dom.js';
import { makeSwitch } from './switch.js';

const SHARE_WORDS = {
  false: ['share with host', 'Let the host of this class read your prompt and the generated text, without your name. Now nobody can.'],
  true: ['host can read this', 'The host of this class can read your prompt and the generated text, without your name. Press to take it back.'],
};

export class Share {
  constructor(store) {
    this.store = store;
    this.button = makeSwitch({
      spec: 'button.share-switch.switch',
      isOn: false,
      words: '',
      title: '',
      onChange: (on) => store.send('share', { on }).catch((error) => (this.button.title = error.message)),
    });
    this.button.hidden = true;
  }

  draw() {
    const { limits, shared } = this.store;
    const [words, title] = SHARE_WORDS[shared];
    this.button.hidden = !limits.share;
    this.button.setAttribute('aria-checked', String(shared));
    this.button.title = title;
    setText(this.button.lastChild, words);
  }
}
