/**
 * The player: the Step page over a recording that stands in the same file. There is no server, so there is no line, and
 * nothing is remembered: a page in a frame without an origin has no storage.
 *
 * For tests: .player-theme
 */

import { make } from '../step_page/drawing/dom.js';
import { say } from '../step_page/drawing/say.js';
import { readRecordingFile } from '../step_page/store/recording_file.js';
import { Store } from '../step_page/store/store.js';
import { StepPage } from '../step_page/step_page.js';

const NO_LINE = {
  state: 'open', idle: true, ack: 0, wasOpen: true, tries: 0, words: '', address: 'about:blank',
  open() {}, retry() {}, drawn() {}, lose() {}, end() {},
  pending: () => 0,
  send: () => Promise.reject({ kind: 'Recorded', message: say('recording.not_here') }),
};

const NO_MEMORY = {
  greeting: () => ({ query: 'recording', session: null }), // nothing to begin with but what is opened
  wantedSelection: () => null,
  lesson: () => null,
  show() {},
  keep() {},
  beside() {},
  forget() {},
};

const BACKGROUNDS = { dark: '#0d1015', light: '#f6f7f9' };

function themeSwitch(page) {
  const set = (theme) => {
    document.documentElement.style.setProperty('--st-background-color', BACKGROUNDS[theme]);
    document.documentElement.style.background = BACKGROUNDS[theme];
    page()?.showTheme();
  };
  const chosen = matchMedia('(prefers-color-scheme: light)');
  set(chosen.matches ? 'light' : 'dark');
  chosen.addEventListener('change', () => set(chosen.matches ? 'light' : 'dark'));
  return make('button.quiet.player-theme', { onclick: () => set(page().root.dataset.theme === 'dark' ? 'light' : 'dark') }, say('recording.theme'));
}

export default async function player(parent) {
  let page = null;
  const theme = themeSwitch(() => page);
  try {
    const text = document.getElementById('recording').textContent;
    const recorded = await readRecordingFile(Uint8Array.from(atob(text), (c) => c.charCodeAt(0)));
    const store = new Store({ line: NO_LINE, memory: NO_MEMORY });
    page = new StepPage(parent, store, [theme]);
    page.root.dataset.player = '';
    store.openRecording(recorded);
  } catch (error) {
    parent.replaceChildren(make('p', { role: 'alert' }, error.message));
    throw error;
  }
}
