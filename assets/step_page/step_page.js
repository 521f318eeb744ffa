/**
 * The Step page. Python gives it the secret under which its line to the server speaks, and no more. Streamlit calls
 * `stepPage` again with another theme; the page is built once per element.
 *
 * Top-level names are unique over all files: they are bundled into one module (this file comes last).
 * State for tests, on .loupe: data-step (looked at), data-steps (recorded), data-ack, data-epoch, data-busy,
 * data-follow, data-recorded (until there is a run of this page's own), data-theme, data-line (the connection's state), data-drawn (frames drawn). All are set after the panels
 * are drawn.
 */

import { make } from './drawing/dom.js';
import { drawTogether } from './drawing/draw_pass.js';
import { say } from './drawing/say.js';
import { themeOf } from './drawing/palette.js';
import { theStore } from './store/store.js';
import { fitToView } from './drawing/fit.js';
import { TopBar } from './controls/top_bar.js';
import { FirstScreen } from './controls/first_screen.js';
import { PromptRow } from './controls/prompt.js';
import { TokenStrip } from './panels/tokens/token_strip.js';
import { StripLines } from './panels/tokens/strip_lines.js';
import { Stations } from './panels/loop/stations.js';
import { TurnBeats } from './panels/loop/turn_beats.js';
import { LineState } from './controls/line_state.js';
import { Player } from './controls/player.js';
import { Presenter } from './controls/presenter.js';
import { SlowStep } from './controls/slow_step.js';
import { Settings } from './controls/settings.js';
import { Share } from './controls/share.js';
import { flyToken } from './panels/tokens/fly.js';
import { Checks } from './controls/checks.js';
import { FollowBar } from './controls/follow.js';
import { KeepRun } from './controls/keep_run.js';
import { Lead } from './controls/lead.js';
import { RecordingBar } from './controls/recording_bar.js';
import { letGoOfDragged } from './controls/keys.js';
import { explainTerms } from './drawing/explain.js';
import { Popover } from './drawing/overlay.js';
import { BlockView } from './panels/block/block_view.js';
import { buildStopInspector } from './panels/loop/stop_inspector.js';
import { kvPanel } from './panels/kv_cache/kv_grid.js';
import { attentionPanel } from './panels/attention/attention.js';
import { nextTokenPanel } from './panels/next_token/next_token.js';
import { lessonsOnPage } from './lessons/on_page.js';
import { timingPanel } from './panels/time/timing.js';
import { tellSource } from './picture/take_away.js';
import { stepSource } from './picture/step_source.js';
import { memoryPanel } from './panels/memory/memory.js';

const PANELS = [
  ['kv', 'KV cache', kvPanel],
  ['attention', 'Attention', attentionPanel],
  ['next', say('step_page.next_token'), nextTokenPanel],
  ['timing', say('step_page.time_per_step'), timingPanel],
  ['memory', 'Memory', memoryPanel],
];

const FRAME_MS = 16;

export class StepPage {
  /** @param {HTMLElement[]} [buttons] of whoever shows the page, at the end of the top bar */
  constructor(parent, store, buttons = []) {
    this.store = store;
    this.parent = parent;
    this.changes = new Set();
    this.frames = 0;
    this.frame = null;
    this.drewAt = Infinity; // the first drawing waits for its frame: the page is being put in place
    this.root = parent.querySelector('.loupe') ?? parent.appendChild(make('div.loupe'));
    this.root.dataset.theme = themeOf(this.root);
    this.inner = make('div.page');
    this.root.replaceChildren(this.inner);
    this.parts = this.#build(buttons);
    this.stopFitting = fitToView(this.root, this.root.querySelector('.transport'));
    this.onClick = (event) => this.#letGo(event);
    this.root.addEventListener('click', this.onClick);
    this.stopLetting = letGoOfDragged(this.root);
    this.stopExplaining = explainTerms(this.root);
    this.onChange = (event) => this.#collect(event.detail);
    store.addEventListener('change', this.onChange);
    this.dispose = () => this.#dispose();
    store.show();
    this.#collect(new Set(['model', 'session', 'tokens', 'steps', 'select', 'theme', 'busy', 'machine']));
  }

  #build(buttons) {
    const { store, root, inner } = this;
    const place = (spec, props) => {
      const node = make(spec, props);
      inner.append(node);
      return node;
    };
    const bar = place('header.top-bar');
    const settings = new Settings(root, store);
    const checks = new Checks(root, store);
    const share = new Share(store);
    const keep = new KeepRun(root, store);
    const recording = new RecordingBar(root, bar, store);
    const prompt = new PromptRow(place('section.prompt-row', { 'aria-label': say('step_page.prompt') }), store);
    const first = new FirstScreen(store, prompt, () => this.lessons.isOn);
    const strip = new TokenStrip(place('section.strip-box', { 'aria-label': say('step_page.tokens') }), store, root);
    const turn = place('section.turn', { 'aria-label': say('step_page.loop') });
    const stations = new Stations(turn, store, (selector) => this.flash(selector));
    this.stops = new Popover(
      root,
      stations.stopButton,
      { title: say('step_page.stop_rules'), hint: say('step_page.stop_rules_hint'), name: 'stops', keep: '.transport' },
      (body) => buildStopInspector(body, store),
    );
    const stage = place('div.stage');
    const grid = place('div.panels');
    const cards = this.#buildPanels(grid);
    const panels = Object.fromEntries(cards.map(({ name, panel }) => [name, panel]));
    tellSource(root, stepSource(store, () => panels.attention.shown));
    const presenter = new Presenter(root, stage, cards);
    this.blockView = new BlockView(store, () => this.block.place());
    this.block = new Popover(
      root,
      stations.forwardButton,
      { title: say('block.title'), hint: say('block.hint'), name: 'block', keep: '.transport, .strip-box, .stations', above: '.transport' },
      (body) => this.blockView.build(body),
    );
    const lines = new StripLines(root.querySelector('.strip-box'), root.querySelector('.strip'), store, panels.attention);
    const line = new LineState(grid, store);
    const openStops = () => this.stops.open();
    const slowStep = this.#buildSlowStep(turn, presenter, { stations, strip, ...panels });
    const player = new Player(root, place('footer.transport'), store, { prompt, presenter, slowStep, openStops });
    slowStep.held = new Set([strip, stations, ...Object.values(panels), player]);
    const topBar = new TopBar(bar, root, store, [line.bar.node, share.button, keep.button, presenter.button, settings.button, checks.button, ...buttons]);
    const windows = { stops: this.stops };
    const follow = new FollowBar(root, bar, store, { presenter, windows });
    const lead = new Lead(root, store, { presenter, windows });
    checks.button.after(lead.button);
    this.lessons = lessonsOnPage(root, store, { player, presenter, panels, settings, checks, strip, topBar, stops: this.stops, block: this.block });
    return [
      topBar,
      prompt,
      strip,
      stations,
      share,
      keep,
      recording,
      follow,
      lead,
      settings,
      checks,
      ...Object.values(panels),
      first,
      presenter,
      lines,
      line,
      player,
      this.lessons,
    ];
  }

  #buildSlowStep(place, presenter, parts) {
    const { root, store } = this;
    const beats = new TurnBeats(root, store, parts, presenter);
    const on = {
      draw: (part, changes, how) => this.#drawPart(part, changes, how),
      end: () => beats.clear(),
      over: () => {
        this.#drawPart(this.lessons, new Set()); // a scene may have waited for the step to be shown to its end
        this.#settle(false);
      },
    };
    this.slowStep = new SlowStep(root, store, { place, beats: beats.list, on });
    beats.tell = (part, how) => this.slowStep.tell(part, how);
    return this.slowStep;
  }

  #buildPanels(grid) {
    return PANELS.map(([name, title, build]) => {
      const card = make(`section.card.panel-${name}`, { 'aria-label': title, data: { recorded: say('first.recorded_tag') } });
      grid.append(card);
      return { name, title, card, panel: build(card, this.store) };
    });
  }

  /** Changes of one animation frame are drawn together; a step that comes later than that is drawn at once. */
  #collect(changes) {
    for (const name of changes) this.changes.add(name);
    this.frame ??= requestAnimationFrame(() => this.#draw());
    if (changes.has('steps') && performance.now() - this.drewAt > FRAME_MS) queueMicrotask(() => this.#drawNow());
  }

  /** A step is on screen one frame sooner than if it waited for the next one to begin. */
  #drawNow() {
    if (this.frame === null) return; // drawn meanwhile, or gone
    cancelAnimationFrame(this.frame);
    this.#draw();
  }

  #draw() {
    this.frame = null;
    this.drewAt = performance.now();
    const { changes, store } = this;
    this.changes = new Set();
    this.slowStep.watch();
    drawTogether(() => {
      for (const part of this.parts) if (!this.slowStep.keeps(part, changes)) this.#drawPart(part, changes);
      if (changes.has('steps') || changes.has('select')) this.stops.refresh();
      if (['steps', 'select', 'play', 'theme', 'model'].some((name) => changes.has(name))) this.block.refresh();
    });
    if (!this.slowStep.isOn) this.#settle(true);
    store.drawn();
  }

  #drawPart(part, changes, how) {
    try {
      part.draw(changes, how);
    } catch (error) {
      console.error('Loupe: a part of the page could not be drawn.', error); // the others still are
    }
  }

  /** All parts show what the store holds. @param {boolean} flies whether a token that has just come flies to its place */
  #settle(flies) {
    const { store, root } = this;
    this.#showDraw(flies);
    Object.assign(root.dataset, {
      step: store.sel.step,
      steps: store.steps.length,
      ack: store.line.ack,
      epoch: store.epoch,
      busy: Boolean(store.busy) || !store.line.idle,
      line: store.line.state,
      follow: store.sel.follow,
      recorded: Boolean(store.recording),
      drawn: ++this.frames,
    });
  }

  /** A step that came while it is watched: its token flies from its bar to the strip. */
  #showDraw(flies) {
    const { store, root } = this;
    const key = `${store.session?.sid}/${store.epoch}/${store.newest}`;
    if (key === this.shownDraw) return;
    this.shownDraw = key;
    const since = performance.now() - (this.drawnAt ?? 0);
    this.drawnAt = performance.now();
    if (!flies || !store.sel.follow || store.recording || since < 150) return;
    flyToken(
      root,
      root.querySelector('.panel-next [data-chosen="true"] .lp-row-token'),
      root.querySelector('.chip[data-standing="drawn"] .chip-text'),
    );
  }

  update({ owner }) {
    this.showTheme();
    this.store.line.open(owner);
  }

  /** The colours may be others than when it was drawn. */
  showTheme() {
    const theme = themeOf(this.root);
    if (theme === this.root.dataset.theme) return;
    this.root.dataset.theme = theme;
    this.store.emit(new Set(['theme']));
  }

  /** Show where a station's numbers come from. */
  flash(selector) {
    const panels = [...this.root.querySelectorAll(selector)];
    panels[0]?.scrollIntoView({ block: 'nearest', behavior: 'smooth' });
    for (const panel of panels) {
      panel.classList.remove('flash');
      void panel.offsetWidth; // restart the animation
      panel.classList.add('flash');
    }
  }

  /** A button pressed with the mouse gives its focus back, so that Space steps; one reached by Tab keeps it. */
  #letGo(event) {
    const button = event.target.closest?.('button, input[type="checkbox"]');
    if (button && event.detail > 0 && !button.closest('dialog')) button.blur();
  }

  #dispose() {
    cancelAnimationFrame(this.frame);
    this.frame = null;
    this.stopFitting();
    this.root.removeEventListener('click', this.onClick);
    this.stopLetting();
    this.stopExplaining();
    this.store.removeEventListener('change', this.onChange);
    this.slowStep.destroy();
    for (const part of this.parts) part.destroy?.();
    this.stops.destroy();
    this.block.destroy();
    this.blockView.destroy();
    this.root.replaceChildren();
    stepPages.delete(this.parent);
  }
}

const stepPages = new WeakMap();

export default function stepPage({ data, parentElement }) {
  let page = stepPages.get(parentElement);
  if (!page) {
    page = new StepPage(parentElement, theStore());
    stepPages.set(parentElement, page);
  }
  page.update(data);
  return page.dispose;
}
