/**
 * The prompt: a box that grows to four lines, raw or chat, examples, and Prefill. An example is prefilled at once; the run
 * that was there can be had back by Undo.
 *
 * A paste of a megabyte must neither freeze the page nor be cut in silence. It is refused
 * in words, and what was typed stays.
 *
 * For tests: .prompt-box, .prompt-mode button, .example, .prefill, .prompt-error
 */

import { say } from '../drawing/say.js';
import { isComposing } from './keys.js';
import { make, setText } from '../drawing/dom.js';
import { formatCount } from '../drawing/format.js';
import { LinkQuestion } from './link_question.js';
import { segmentedControl } from '../drawing/panel_frame.js';

const MOST_CHARACTERS = 200_000;
const LINES = 4;

export class PromptRow {
  constructor(root, store) {
    this.store = store;
    this.mode = 'raw';
    this.edited = false;
    this.shown = null;
    this.onTyped = () => {}; // told whenever box or mode were changed by hand
    this.box = make('textarea.prompt-box', {
      rows: 1,
      placeholder: say('prompt.placeholder'),
      spellcheck: false,
      'aria-label': say('prompt.label'),
    });
    this.modes = segmentedControl(
      say('prompt.mode'),
      [
        ['raw', 'raw', say('prompt.raw')],
        ['chat', 'chat', say('prompt.chat')],
      ],
      this.mode,
      (mode) => {
        this.mode = mode;
        this.onTyped();
      },
    );
    this.modes.node.classList.add('prompt-mode');
    this.button = make(
      'button.prefill',
      { title: say('prompt.prefill_title'), onclick: () => this.prefill() },
      say('prompt.prefill'),
    );
    this.examples = make('div.examples', { 'aria-label': say('prompt.examples') });
    this.error = make('p.prompt-error', { role: 'alert', hidden: true });
    this.notes = make('p.prompt-notes', { hidden: true });
    root.append(
      make('div.prompt-line', {}, make('div.prompt-shell', {}, this.box), this.modes.node, this.button),
      this.examples,
      this.error,
      this.notes,
    );
    this.question = new LinkQuestion(root, store, (words) => this.#say(words));
    this.box.addEventListener('paste', (event) => this.#paste(event));
    this.box.addEventListener('input', () => this.#typed());
    this.box.addEventListener('keydown', (event) => this.#key(event));
  }

  /** Characters that are sent: a shared server may take fewer. */
  get most() {
    return this.store.limits.prompt_characters || MOST_CHARACTERS;
  }

  get text() {
    return this.box.value;
  }

  /** Whether the box holds another prompt than the run on screen. */
  get changed() {
    const { session, line } = this.store;
    if (!this.store.hasRun || typeof session?.prompt !== 'string' || !this.text || line.pending('prefill')) return false;
    return this.text !== session.prompt.replace(/\r\n?/g, '\n') || this.mode !== session.mode;
  }

  draw(changes) {
    const { store } = this;
    if (changes.has('model')) this.#drawExamples();
    if (['session', 'model', 'busy', 'answers'].some((name) => changes.has(name))) this.#drawPrompt();
    if (changes.has('notice')) this.#say(store.notice);
  }

  #drawPrompt() {
    const { store } = this;
    const running = store.line.pending('prefill') > 0;
    this.button.disabled = running;
    setText(this.button, running ? say('prompt.prefilling') : say('prompt.prefill'));
    this.#drawNotes();
    this.question.draw();
    const session = store.recording ? null : store.session; // a recorded run is nobody's: the box begins as without one
    const source = [session, store.link, store.examples[0]].find((one) => one?.prompt);
    const key = `${session?.sid}/${session?.branch}/${source?.mode}/${source?.prompt}`;
    if (!source || key === this.shown || (this.edited && this.text !== '')) return;
    this.shown = key;
    this.#fill(source.prompt ?? '', source.mode ?? 'raw');
  }

  #drawExamples() {
    const chat = this.store.model?.has_chat_template;
    this.modes.node.querySelectorAll('button')[1].disabled = !chat;
    const fitting = this.store.examples.filter((example) => chat || example.mode !== 'chat');
    this.examples.replaceChildren(
      ...fitting.map((example) =>
        make(
          'button.example',
          {
            title: say('prompt.example_title', { how: example.mode === 'chat' ? 'A chat turn' : 'Raw text', prompt: example.prompt }),
            onclick: () => this.#take(example),
          },
          example.label,
        ),
      ),
    );
  }

  /** Doubts about the prompt or the link, in words: a trailing space that became a token, a link that was cut. */
  #drawNotes() {
    const { session, link } = this.store;
    const words = [...(session?.notes ?? []), ...(link?.notes ?? [])].join(' ');
    setText(this.notes, words);
    this.notes.hidden = !words;
  }

  #take(example) {
    this.#fill(example.prompt, example.mode);
    this.edited = true;
    return this.prefill();
  }

  #fill(text, mode) {
    this.box.value = text;
    this.mode = mode;
    this.modes.set(mode);
    this.#grow();
    this.#say('');
  }

  #say(words) {
    setText(this.error, words);
    this.error.hidden = !words;
    this.box.setAttribute('aria-invalid', String(Boolean(words)));
  }

  #paste(event) {
    const pasted = event.clipboardData?.getData('text/plain').length ?? 0;
    if (pasted <= this.most) return;
    event.preventDefault();
    this.#say(
      say('prompt.paste_too_long', { characters: formatCount(pasted), most: formatCount(this.most) }),
    );
  }

  #typed() {
    this.edited = true;
    const tooMany = this.text.length > this.most;
    this.#say(tooMany ? this.#tooLong() : '');
    this.#grow();
    this.onTyped();
  }

  #tooLong() {
    return say('prompt.too_long', { characters: formatCount(this.text.length), most: formatCount(this.most) });
  }

  /** Browsers that size a box by its content do it in CSS; for the others, count line ends. */
  #grow() {
    if (CSS.supports('field-sizing', 'content')) return;
    this.box.rows = Math.min(LINES, this.text.slice(0, 10_000).split('\n').length);
  }

  #key(event) {
    if (event.key !== 'Enter' || !(event.ctrlKey || event.metaKey) || isComposing(event)) return;
    event.preventDefault();
    this.prefill();
  }

  async prefill() {
    if (this.text.length > this.most) return this.#say(this.#tooLong());
    const answer = this.#ask(this.text, this.mode);
    this.box.scrollTop = 0;
    this.box.blur(); // so that Space steps
    return answer;
  }

  /** The first example, for a page that nobody has asked for anything yet. Whoever has the focus keeps it. */
  begin() {
    const [example] = this.store.examples;
    return this.#ask(example.prompt, example.mode);
  }

  async #ask(sent, mode) {
    this.#say('');
    this.store.follow();
    const answer = this.store.send('prefill', { prompt: sent, mode });
    try {
      await answer;
      if (this.text === sent) this.edited = false;
    } catch (error) {
      this.#say(error.message);
    }
  }
}
