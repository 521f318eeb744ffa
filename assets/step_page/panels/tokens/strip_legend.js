/**
 * Beneath the strip: what its colours and signs mean. On request the chips are coloured by surprisal instead, and the legend
 * says the scale and the run's perplexity.
 *
 * For tests: .surprisal-button[aria-pressed], .surprisal-said, .sheet-surprisal table
 */

import { make, setText } from '../../drawing/dom.js';
import { formatCount, formatNumber, formatProb } from '../../drawing/format.js';
import { openSheet } from '../../drawing/overlay.js';
import { plainToken, TOKEN_SIGNS } from '../../drawing/pieces.js';
import { say } from '../../drawing/say.js';
import { tableTwin } from '../../drawing/table_twin.js';
import { takeAway } from '../../picture/take_away.js';
import { toggleButton } from '../../drawing/panel_frame.js';
import { ROLE_WORDS, STANDING_WORDS } from '../../store/roles.js';

const MOST_BITS = 12; // this and more has the strongest colour

const painted = new WeakMap(); // chip -> the bits it shows; most drawings change none

/** A chip in the colour of its surprisal, which takes the place of its id; as ever where `bits` is undefined. */
export function paintSurprisal(chip, { id }, position, bits) {
  if (painted.get(chip) === bits) return;
  painted.set(chip, bits);
  const isOn = bits !== undefined;
  chip.classList.toggle('shows-bits', isOn && bits !== null);
  chip.style.setProperty('--bits', isOn && bits !== null ? Math.min(1, bits / MOST_BITS).toFixed(3) : '');
  const words = bits === null ? say('surprisal.none') : say('surprisal.bits', { bits: (bits ?? 0).toFixed(1) });
  setText(chip.querySelector('small'), isOn ? words : `${position} · ${id}`);
}

export class StripLegend {
  /** @param {HTMLElement} page @param {import('../../store/surprisal.js').Surprisal} surprisal */
  constructor(page, store, surprisal) {
    this.page = page;
    this.store = store;
    this.surprisal = surprisal;
    const { button, table } = this.#buttons();
    this.button = button;
    this.said = make('span.surprisal-said', { role: 'status' });
    const ramp = make('span.surprisal-scale', {}, '0', make('i'), say('surprisal.scale', { most: MOST_BITS }));
    this.roles = make('span.legend-part', {}, ...legendRoles());
    this.scale = make('span.legend-part', { hidden: true }, this.said, ramp, table);
    this.node = make('div.strip-legend', { 'aria-label': say('surprisal.legend') }, this.roles, this.scale, button, this.#save());
  }

  #buttons() {
    const button = toggleButton(say('surprisal.button'), say('surprisal.title'), () => this.surprisal.toggle());
    button.classList.add('surprisal-button');
    button.dataset.term = 'surprisal';
    const table = make('button.lp-toggle', { title: say('surprisal.table_title'), onclick: () => this.#openTable() }, say('panel.table'));
    return { button, table };
  }

  #save() {
    return takeAway({
      name: 'tokens', title: say('step_page.tokens'), table: () => ({ columns: say('surprisal.columns').split(', '), rows: this.#rows() }),
      picture: () => {
        const root = this.node.closest('.strip-box');
        return { root, parts: [root.querySelector('.strip'), this.node.parentElement], leaves: '.lp-toggle' };
      },
    });
  }

  draw() {
    const { on } = this.surprisal;
    this.button.hidden = !this.store.steps.length;
    this.roles.hidden = on;
    this.scale.hidden = !on;
    if (on) setText(this.said, this.#words());
  }

  #words() {
    const { asking, error } = this.surprisal;
    const { prompt, generated, all } = this.surprisal.summary();
    if (!all) return error || (asking ? say('surprisal.asking') : '');
    const numbers = (part) => ({ perplexity: formatNumber(part.perplexity), count: formatCount(part.count) });
    const words = [];
    if (prompt && generated) words.push(say('surprisal.all', numbers(all)));
    if (prompt) words.push(say('surprisal.prompt', numbers(prompt)));
    if (generated) words.push(say('surprisal.generated', numbers(generated)));
    return `${words.join(' · ')}${error ? ` · ${error}` : asking ? ` · ${say('surprisal.asking')}` : ''}`;
  }

  /** Every token: position, text, id, role, and probability and surprisal where they were asked for. */
  #rows() {
    const { store, surprisal } = this;
    return store.tokens.map((token, position) => {
      const bits = surprisal.at(position);
      return [position, plainToken(token), token.id, ROLE_WORDS[token.role], bits === null ? '–' : formatProb(2 ** -bits), bits === null ? '–' : formatNumber(bits, 4)];
    });
  }

  #openTable() {
    const rows = this.#rows();
    const columns = say('surprisal.columns').split(', ');
    openSheet(this.page, { title: say('surprisal.table_heading'), hint: say('surprisal.hint'), name: 'surprisal', wide: true }, (body) =>
      body.append(make('p', {}, this.#words()), tableTwin(columns, rows, say('surprisal.caption'))),
    );
  }
}

function legendRoles() {
  const roles = Object.entries(ROLE_WORDS).map(([role, words]) =>
    make('span.legend-role', { data: { role }, title: words }, make('i'), role),
  );
  const signs = TOKEN_SIGNS.slice(0, 3).map(({ text, kind, meaning }) =>
    make('span.legend-sign', {}, make(`b.token-text.sign-${kind}`, {}, text), ` ${meaning}`),
  );
  const next = make('span.legend-role', { data: { role: 'new' }, title: STANDING_WORDS.drawn }, make('i'), say('strip_legend.not_cached'));
  return [...roles, next, ...signs];
}
