/**
 * Whether the host of the class may read this tab's text. Off until somebody switches it on, and taken back at once.
 *
 * What is shared is what is on screen: prompt and drawn text, without a name. For tests: .share-switch[aria-checked]
 */

import { say } from '../drawing/say.js';
import { setText } from '../drawing/dom.js';
import { makeSwitch } from './switch.js';

const SHARE_WORDS = {
  false: [say('share.off'), say('share.off_title')],
  true: [say('share.on'), say('share.on_title')],
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
