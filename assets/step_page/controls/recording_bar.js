/**
 * What is open where a recording is looked at: which run, by which model, made when. And the ways on: with the loaded
 * model from here, or back to the run of this page. In the player there is neither.
 *
 * For tests: .recording-bar, .go-live, .close-recording, .recording-said
 */

import { make, setText } from '../drawing/dom.js';
import { say } from '../drawing/say.js';
import { samplingWords } from '../store/distribution.js';

export class RecordingBar {
  constructor(root, place, store) {
    this.root = root;
    this.store = store;
    this.what = make('b');
    this.who = make('span.recording-who');
    this.said = make('span.recording-said', { role: 'alert' });
    this.live = make('button.small-button.go-live', { title: say('recording.go_live_title'), onclick: () => this.#goLive() }, say('recording.go_live'));
    this.close = make('button.small-button.close-recording', { title: say('recording.close_title'), onclick: () => store.closeRecording() }, say('recording.close'));
    this.node = make('p.run-bar.recording-bar', { hidden: true }, this.what, this.who, this.said, make('span.recording-ways', {}, this.live, this.close));
    place.append(this.node);
  }

  draw() {
    const { store, root } = this;
    const { isOpened, recording, session, model } = store;
    this.node.hidden = !isOpened;
    root.toggleAttribute('data-opened', isOpened);
    if (!isOpened) return setText(this.said, '');
    const hasServer = !('player' in root.dataset);
    this.live.hidden = this.close.hidden = !hasServer;
    this.live.disabled = store.line.pending('go_live') > 0;
    setText(this.what, say('recording.what', { prompt: session?.prompt ?? '…' }));
    return setText(this.who, say('recording.who', { chips: model.chips, sampling: samplingWords(session.sampling), seed: session.seed, day: recording.made.at.slice(0, 10) }));
  }

  /** The run takes the place of the one on the server, once its tokens were found to be the loaded model's own. */
  async #goLive() {
    const { store } = this;
    const { session, model, tokens } = store;
    const spelled = Object.fromEntries(tokens.map(({ id, hex }) => [id, hex]));
    setText(this.said, '');
    try {
      await store.send('go_live', { recipe: session.recipe, model, spelled });
      store.closeRecording();
    } catch (error) {
      setText(this.said, error.message);
    }
  }
}
