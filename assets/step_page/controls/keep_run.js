/**
 * Keep a run, and look at a kept one: the run on screen as a recording or as a page that plays it anywhere, and a recording
 * from a file, from one that is dropped on the page, or from those that ship with Loupe.
 *
 * For tests: .keep-button, .save-run[data-kind=recording|page], .open-run input, .shipped-run[data-name], .keep-said
 */

import { icon, make, setText } from '../drawing/dom.js';
import { Popover } from '../drawing/overlay.js';
import { say } from '../drawing/say.js';
import { saveFile } from '../drawing/table_twin.js';
import { readRecordingFile } from '../store/recording_file.js';

const SHIPPED_RUNS = [
  ['the-cat-sat', say('shipped.the_cat_sat')],
  ['time-flies', say('shipped.time_flies')],
  ['greedy', say('shipped.greedy')],
  ['a-chat-turn', say('shipped.a_chat_turn')],
  ['tokens-are-bytes', say('shipped.tokens_are_bytes')],
];
const KINDS = {
  recording: { words: say('recording.save_recording'), says: say('recording.save_recording_says'), type: 'application/octet-stream' },
  page: { words: say('recording.save_page'), says: say('recording.save_page_says'), type: 'text/html' },
};
const MOST_FILE = 256_000_000;

export class KeepRun {
  constructor(page, store) {
    this.page = page;
    this.store = store;
    this.button = make('button.quiet.keep-button', { title: say('recording.button_title') }, icon('keep', 15), make('span', {}, say('recording.button')));
    const words = { title: say('recording.title'), hint: say('recording.hint'), name: 'keep' };
    this.popover = new Popover(page, this.button, words, (body) => this.#build(body));
    this.onDrag = (event) => this.#dragged(event);
    page.addEventListener('dragover', this.onDrag);
    page.addEventListener('drop', this.onDrag);
  }

  #build(body) {
    this.said = make('p.keep-said', { role: 'status' });
    const file = make('input.visually-hidden', { type: 'file', accept: '.loupe', onchange: () => this.#openFile(file.files[0]) });
    this.saves = Object.keys(KINDS).map((kind) => this.#saveLine(kind));
    body.replaceChildren(
      make('h3', {}, say('recording.save')),
      ...this.saves,
      make('h3', {}, say('recording.open')),
      make('label.open-run.small-button', {}, icon('open', 14), make('span', {}, say('recording.open_file')), file),
      make('div.shipped-runs', {}, ...SHIPPED_RUNS.map(([name, words]) => this.#shippedLine(name, words))),
      this.said,
    );
    this.draw();
  }

  #saveLine(kind) {
    const { words, says } = KINDS[kind];
    const button = make('button.small-button.save-run', { data: { kind }, onclick: () => this.#save(kind) }, icon('keep', 14), words);
    return make('div.save-line', {}, button, make('small', {}, says));
  }

  #shippedLine(name, words) {
    return make('button.shipped-run', { data: { name }, onclick: () => this.#openShipped(name) }, words);
  }

  draw() {
    const { store } = this;
    for (const line of this.saves ?? []) line.firstChild.disabled = !store.hasRun || store.line.pending('save_run') > 0;
  }

  #say(words, isError = false) {
    setText(this.said, words);
    this.said.classList.toggle('error-words', isError);
  }

  async #save(kind) {
    this.#say(say('recording.saving'));
    try {
      const { name, file } = await this.store.send('save_run', { kind });
      saveFile(new Blob([file.data], { type: KINDS[kind].type }), name);
      this.#say(say('recording.saved', { name }));
    } catch (error) {
      this.#say(error.message, true);
    }
  }

  async #openShipped(name) {
    try {
      const address = `${this.store.line.address.replace(/^ws/, 'http').replace(/live-line$/, '')}recordings/${name}.loupe`;
      const response = await fetch(address);
      if (!response.ok) throw new Error(await response.text());
      await this.#open(await response.arrayBuffer());
    } catch (error) {
      this.#say(error.message, true);
    }
  }

  async #openFile(file) {
    if (!file) return;
    if (!this.popover.isOpen) this.popover.open();
    try {
      if (file.size > MOST_FILE) throw new Error(say('recording.too_large', { megabytes: MOST_FILE / 1e6 }));
      await this.#open(await file.arrayBuffer());
    } catch (error) {
      this.#say(error.message, true);
    }
  }

  async #open(buffer) {
    const recorded = await readRecordingFile(new Uint8Array(buffer));
    this.store.openRecording(recorded);
    this.popover.close();
  }

  /** A file that is dropped anywhere on the page is opened; without this, the browser would leave the page for it. */
  #dragged(event) {
    if (![...event.dataTransfer.types].includes('Files')) return;
    event.preventDefault();
    if (event.type === 'drop') this.#openFile(event.dataTransfer.files[0]);
  }

  destroy() {
    this.page.removeEventListener('dragover', this.onDrag);
    this.page.removeEventListener('drop', this.onDrag);
    this.popover.destroy();
  }
}
