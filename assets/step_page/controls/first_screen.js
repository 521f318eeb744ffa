/**
 * What somebody sees who has just come: the first example, prefilled once by the page itself, and until the model is there
 * the same step as it was recorded earlier.
 *
 * The page begins a run only where nobody else has: the server says that the tab is new, no link and no reload brought
 * one, and nothing was typed. After that, a page without a run stays one (after Reset, say) until somebody prefills.
 */

export class FirstScreen {
  /** @param {import('./prompt.js').PromptRow} prompt @param {() => boolean} hasLesson whether a lesson begins the run */
  constructor(store, prompt, hasLesson) {
    this.store = store;
    this.prompt = prompt;
    this.hasLesson = hasLesson;
    const { query, session } = store.memory.greeting();
    if (!query && !session) store.showRecording(); // else the tab's own run may be there in a moment
  }

  draw() {
    const { store } = this;
    if (!store.how) {
      if (store.loading || store.place) store.showRecording();
      return;
    }
    if (!store.hasBegun) {
      store.hasBegun = true;
      if (this.#isNew) this.prompt.begin();
    }
    if (!store.line.pending('prefill')) store.endRecording(); // one that works brings its own run, which ends it too
  }

  get #isNew() {
    const { store, prompt } = this;
    const isUntouched = !prompt.edited && !store.line.pending('prefill') && !this.hasLesson();
    return store.how === 'new' && !store.hasRun && !store.notice && !store.memory.greeting().session && isUntouched;
  }
}
