/**
 * What a lesson can point at: a name, what it stands for on the page, and the panel that has it in presenter's mode.
 *
 * The names are also those of explorer/lessons/places.py; a test holds the two together.
 */

const STATION = (name) => ({ selector: `.station[data-station="${name}"]` });
const ACT = (name) => ({ selector: `.transport [data-act="${name}"]` });

export const LESSON_PLACES = {
  tokens: { selector: '.strip' },
  newest: { selector: '.chip[data-standing="drawn"]' },
  prompt: { selector: '.prompt-shell' },
  loop: { selector: '.stations' },
  in: STATION('in'),
  forward: STATION('forward'),
  logits: STATION('logits'),
  sample: STATION('sample'),
  stop: STATION('stop'),
  cache: { selector: '.panel-kv', panel: 'kv' },
  attention: { selector: '.panel-attention', panel: 'attention' },
  next: { selector: '.panel-next', panel: 'next' },
  time: { selector: '.panel-timing', panel: 'timing' },
  memory: { selector: '.panel-memory', panel: 'memory' },
  bars: { selector: '.lp-bars', panel: 'next' },
  stages: { selector: '.lp-funnel', panel: 'next' },
  draw: { selector: '.lp-draw-line', panel: 'next' },
  sliders: { selector: '.lp-sliders', panel: 'next' },
  again: { selector: '.lp-trials', panel: 'next' },
  transport: { selector: '.transport-row' },
  scrubber: { selector: '.scrubber-box' },
  step: ACT('step'),
  play: ACT('play'),
  fork: ACT('fork'),
  force: ACT('force'),
  settings: { selector: '.sampling-button' },
  checks: { selector: '.checks-badge' },
  surprisal: { selector: '.surprisal-button' },
  link: { selector: '.link-button' },
};

const LIT = 'is-spotlit';
const SEEN_ENOUGH = 260; // pixels of it
const SAFE = 60; // pixels at the ends of the view, where the menu and the bar are

/** The ring around what a scene speaks of. */
export class Spotlight {
  #names = [];

  /** @param {HTMLElement} root the page */
  constructor(root) {
    this.root = root;
  }

  /** @returns {string|null} the panel that presenter's mode should show for them */
  point(names) {
    this.#names = names;
    this.draw();
    this.#bringIntoView();
    return names.map((name) => LESSON_PLACES[name]?.panel).find(Boolean) ?? null;
  }

  /** What can be seen for a good part stays where it is. On a phone the lesson's sheet covers the lower part of the view. */
  #bringIntoView() {
    const lesson = this.root.querySelector('.lesson').getBoundingClientRect();
    const isSheet = lesson.width > 0.8 * innerWidth;
    const foot = isSheet ? lesson.top : innerHeight - SAFE;
    const isHidden = (node) => {
      const { top, bottom, height } = node.getBoundingClientRect();
      return Math.min(bottom, foot) - Math.max(top, SAFE) < Math.min(height, SEEN_ENOUGH);
    };
    this.#nodes().filter(isHidden).at(-1)?.scrollIntoView({ block: isSheet ? 'start' : 'nearest', behavior: 'smooth' });
  }

  #nodes() {
    return this.#names.flatMap((name) => [...this.root.querySelectorAll(LESSON_PLACES[name]?.selector ?? ':not(*)')]);
  }

  /** What is lit may be another node now: the newest token is. */
  draw() {
    const lit = new Set(this.#nodes());
    for (const node of this.root.querySelectorAll(`.${LIT}`)) if (!lit.has(node)) node.classList.remove(LIT);
    for (const node of lit) node.classList.add(LIT);
  }
}
