/**
 * The tokens, in order: what was typed, what the template added, what was drawn, and what the looked-at step fed and drew.
 *
 * Clicking a token selects the step that drew it (a prompt token: the prefill). That step's own input is ringed and
 * tagged "in", the token it drew is dashed and tagged "drawn": it is not in the cache yet. Long runs are folded.
 * The prompt and what was generated are two parts of one line: the first keeps its place, the second follows the run.
 *
 * For tests: .strip .chip[data-position][data-id][data-role][data-standing], .fold, .strip-pending, .strip-text
 */

import { say } from '../../drawing/say.js';
import { afterWrites } from '../../drawing/draw_pass.js';
import { keepFromTranslators, make, setChildren, setText } from '../../drawing/dom.js';
import { renderToken, quotedToken, hexSign } from '../../drawing/pieces.js';
import { ROLE_WORDS, STANDING_WORDS, drawnPosition, standing, stepOfPosition } from '../../store/roles.js';
import { Surprisal } from '../../store/surprisal.js';
import { paintSurprisal, StripLegend } from './strip_legend.js';
import { formatCount } from '../../drawing/format.js';

const HEAD_KEPT = 8; // prompt tokens shown before a fold
const TAIL_KEPT = 14; // and after it
const AROUND = 12; // neighbours of the looked-at token
const NEWEST_KEPT = 160;
const SMALLEST_FOLD = 6;
const UNFOLD_BY = 400;
const SAID_TOKENS = 300; // of the prompt, that the line below is read from
const SAID_CHARACTERS = 200;

/** Ranges of positions to draw, in order; the gaps between them are folds. */
export function stripRanges(total, promptLength, focus, opened) {
  const wanted = [
    [0, HEAD_KEPT],
    [promptLength - TAIL_KEPT, promptLength + 4],
    [focus - AROUND, focus + AROUND],
    [total - NEWEST_KEPT, total],
    ...opened,
  ];
  const sorted = wanted
    .map(([a, b]) => [Math.max(0, a), Math.min(total, b)])
    .filter(([a, b]) => a < b)
    .sort((x, y) => x[0] - y[0]);
  const ranges = [];
  for (const [a, b] of sorted) {
    const last = ranges.at(-1);
    if (last && a - last[1] < SMALLEST_FOLD) last[1] = Math.max(last[1], b);
    else ranges.push([a, b]);
  }
  return ranges;
}

export class TokenStrip {
  /** @param {HTMLElement} root @param {HTMLElement} page over which a table opens */
  constructor(root, store, page) {
    this.store = store;
    this.chips = new Map();
    this.opened = [];
    this.sid = null;
    this.line = make('div.strip', { role: 'group', 'aria-label': say('token_strip.label') });
    this.prompt = make('div.strip-part.of-prompt', { role: 'group', 'aria-label': say('token_strip.prompt') });
    this.run = make('div.strip-part.of-run', { role: 'group', 'aria-label': say('token_strip.generated') });
    this.empty = make('p.strip-empty', {}, say('token_strip.empty'));
    this.text = keepFromTranslators(make('span.strip-said'));
    this.live = make('p.visually-hidden', { 'aria-live': 'polite' });
    this.divider = make('span.strip-divider', {
      role: 'separator',
      'aria-label': say('token_strip.divider'),
      title: say('token_strip.divider_title'),
    });
    this.pending = make('span.strip-pending', { hidden: true });
    this.reading = make('p.strip-text', {}, this.text);
    this.surprisal = new Surprisal(store);
    this.legend = new StripLegend(page, store, this.surprisal);
    root.append(this.line, make('div.strip-foot', {}, this.reading, this.legend.node), this.live);
    this.promptAtEnd = true;
    this.prompt.addEventListener('scroll', () => {
      const { scrollLeft, clientWidth, scrollWidth } = this.prompt;
      this.promptAtEnd = scrollLeft + clientWidth > scrollWidth - 4;
    });
    this.observer = new ResizeObserver(() => this.#refit());
    this.observer.observe(this.line);
    this.line.addEventListener('click', (event) => this.#click(event));
    this.line.addEventListener('wheel', (event) => this.#wheel(event), { passive: false });
  }

  #click(event) {
    const target = event.target.closest('button');
    if (!target) return;
    if (target.classList.contains('fold')) {
      const from = Number(target.dataset.from);
      this.opened.push([from, Math.min(Number(target.dataset.to), from + UNFOLD_BY)]);
      this.draw(new Set(['select']), true);
    } else this.store.select({ step: stepOfPosition(this.store, Number(target.dataset.position)) });
  }

  /** A plain wheel moves the line sideways as far as it goes; then it is the page's again. */
  #wheel(event) {
    const part = event.target.closest('.strip-part');
    if (!part || event.deltaX || event.shiftKey || event.ctrlKey) return;
    const before = part.scrollLeft;
    part.scrollLeft += event.deltaY * (event.deltaMode ? 16 : 1);
    if (part.scrollLeft !== before) event.preventDefault();
  }

  draw(changes, keepScroll = false) {
    if (!['tokens', 'steps', 'select', 'session', 'surprisal'].some((name) => changes.has(name))) return;
    const { store } = this;
    const isOther = store.session?.sid !== this.sid;
    if (isOther) {
      this.sid = store.session?.sid ?? null;
      this.opened = [];
    }
    this.surprisal.sync();
    const focus = this.#focus;
    const prompt = [];
    const run = [];
    let end = 0;
    for (const [from, to] of stripRanges(store.tokens.length, store.promptLength, focus, this.opened)) {
      if (from > end) (end < store.promptLength ? prompt : run).push(this.#fold(end, from));
      for (let position = from; position < to; position++) {
        (position < store.promptLength ? prompt : run).push(this.#chip(position));
      }
      end = to;
    }
    this.#drawPending(run);
    setChildren(this.prompt, prompt);
    setChildren(this.run, run);
    setChildren(this.line, end ? [this.prompt, this.divider, this.run] : [this.empty]);
    this.divider.hidden = !run.length;
    for (const key of this.chips.keys()) if (key >= store.tokens.length) this.chips.delete(key);
    this.#drawText();
    this.legend.draw();
    afterWrites(this, () => {
      this.#share();
      if (isOther || this.promptAtEnd) this.prompt.scrollLeft = this.prompt.scrollWidth; // beside what it led to
      if (!keepScroll) this.#scrollTo(focus);
    });
  }

  get #focus() {
    return this.store.selected ? drawnPosition(this.store, this.store.sel.step) : 0;
  }

  /** Another width, or another size of type: what is looked at stays in view. */
  #refit() {
    this.#share();
    this.prompt.scrollLeft = this.prompt.scrollWidth;
    this.#scrollTo(this.#focus);
  }

  /** The natural width of the run, so that a short one leaves its room to the prompt. */
  #share() {
    const last = this.run.lastElementChild;
    const wide = last ? last.offsetLeft + last.offsetWidth + this.divider.offsetWidth + 30 : 0;
    this.line.style.setProperty('--generated', `${wide}px`);
  }

  #fold(from, to) {
    return make(
      'button.fold',
      { data: { from, to }, title: say('token_strip.unfold_title') },
      say('token_strip.folded', { count: formatCount(to - from) }),
    );
  }

  #chip(position) {
    const { store } = this;
    const token = store.tokens[position];
    const key = `${token.id}/${token.role}/${token.hex}/${JSON.stringify(token.parts ?? [])}`;
    let chip = this.chips.get(position);
    if (chip?.dataset.key !== key) {
      const text = renderToken(make('span.chip-text'), token);
      chip = make(
        'button.chip',
        { data: { position, id: token.id, role: token.role, key } },
        text,
        make('small', {}, `${position} · ${token.id}`),
      );
      this.chips.set(position, chip);
    }
    const now = standing(store, position);
    if (chip.dataset.standing !== now) {
      chip.dataset.standing = now;
      const words = say('token_strip.chip', { token: quotedToken(token), id: token.id, position, role: ROLE_WORDS[token.role], standing: STANDING_WORDS[now] });
      chip.title = words; // the name is what is seen: text, position, id; this describes it
      chip.setAttribute('aria-pressed', String(now === 'drawn'));
    }
    paintSurprisal(chip, token, position, this.surprisal.on ? this.surprisal.at(position) : undefined);
    return chip;
  }

  /** Bytes of a character that is not complete yet stand at the end, as bytes. */
  #drawPending(nodes) {
    const hex = this.store.selected?.pending ?? '';
    this.pending.hidden = !hex;
    if (!hex) return;
    setText(this.pending, say('token_strip.pending', { hex: hexSign(hex) }));
    nodes.push(this.pending);
  }

  #scrollTo(position) {
    const chip = this.chips.get(position) ?? this.chips.get(this.store.tokens.length - 1);
    if (!chip) return;
    const { offsetLeft: left, offsetWidth: width } = chip;
    const { scrollLeft, clientWidth } = this.run;
    const lead = Math.min(clientWidth / 4, 160); // neighbours stay in view on the side that was scrolled to
    const isNewest = position >= this.store.tokens.length - 1;
    if (isNewest) this.run.scrollLeft = this.run.scrollWidth;
    else if (left - lead < scrollLeft) this.run.scrollLeft = left - lead;
    else if (left + width + lead > scrollLeft + clientWidth) this.run.scrollLeft = left + width + lead - clientWidth;
  }

  #drawText() {
    const { store } = this;
    const step = store.selected;
    const isChat = store.session?.mode === 'chat';
    this.reading.dir = directionOf(`${store.session?.prompt ?? ''}${step?.text ?? ''}`);
    this.text.replaceChildren(
      ...(step
        ? [
            ...fedText(store.tokens.slice(0, store.promptLength), isChat),
            make(isChat ? 'bdi.said' : 'span.said', {}, lastPart(step.text, 300)),
            step.held
              ? make('bdi.said-held', { title: say('token_strip.held') }, step.held)
              : null,
          ].filter(Boolean)
        : []),
    );
    if (step && store.sel.follow && this.spoken !== `${this.sid}/${step.index}`) {
      this.spoken = `${this.sid}/${step.index}`;
      const token = store.tokens[drawnPosition(store, step.index)];
      setText(this.live, say('token_strip.said', { step: step.index, token: quotedToken(token) }));
    }
  }

  destroy() {
    this.observer.disconnect();
  }
}

/** Which way a text runs: as its first letter does, so that what was typed and what goes on from it are one line. */
function directionOf(text) {
  const [letter = ''] = text.match(/\p{L}/u) ?? [];
  return /[\p{Script=Hebrew}\p{Script=Arabic}\p{Script=Syriac}\p{Script=Thaana}\p{Script=Nko}]/u.test(letter) ? 'rtl' : 'ltr';
}

/** The end of what was fed, from the tokens themselves: the template's part is told from what was typed. */
function fedText(tokens, isChat) {
  const runs = [];
  for (const { role, hex } of tokens.slice(-SAID_TOKENS)) {
    if (runs.at(-1)?.role === role) runs.at(-1).hex += hex;
    else runs.push({ role, hex });
  }
  const nodes = [];
  let room = SAID_CHARACTERS;
  for (const { role, hex } of runs.reverse()) {
    if (room <= 0) break;
    const text = lastPart(bytesText(hex), room);
    const kind = role === 'template' ? 'said-template' : 'said-prompt';
    nodes.unshift(make(`${isChat ? 'bdi' : 'span'}.${kind}`, {}, text)); // one line of text keeps one direction
    room -= text.length;
  }
  return nodes;
}

function bytesText(hex) {
  const bytes = Uint8Array.from(hex.match(/../g) ?? [], (pair) => parseInt(pair, 16));
  return new TextDecoder('utf-8', { ignoreBOM: true }).decode(bytes);
}

/** The end of a long text, cut between whole code points. */
function lastPart(whole, most) {
  const text = whole.replace(/\s*\n\s*/g, ' ⏎ ');
  return text.length <= most
    ? text
    : `…${Array.from(text.slice(-2 * most))
        .slice(-most)
        .join('')}`;
}
