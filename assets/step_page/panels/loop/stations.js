/**
 * One turn of the loop in five stations: in, forward, logits, sample, stop, and the way back to the start.
 *
 * Every number is the selected step's own. Each station is a button: it shows the panel it speaks of; "stop" opens
 * the list of rules.
 *
 * For tests: .station[data-station] with .station-main and .station-rest, .way-back[data-state]
 */

import { say, sayNodes } from '../../drawing/say.js';
import { make, icon, setText } from '../../drawing/dom.js';
import { takeAway } from '../../picture/take_away.js';
import { penalisedWords } from '../next_token/penalised_ends.js';
import { renderToken, quotedToken } from '../../drawing/pieces.js';
import { drawnPosition, FINISH_WORDS } from '../../store/roles.js';
import { howRead, tokensRead } from '../time/prefill.js';
import { formatCount, formatProb } from '../../drawing/format.js';

const STATIONS = [
  { name: 'in', term: 'token id', label: say('stations.in'), shows: '.strip', says: say('stations.in_title') },
  { name: 'forward', term: 'forward pass', label: say('stations.forward'), shows: '', says: say('stations.forward_title') },
  { name: 'logits', term: 'logit', label: say('stations.logits'), shows: '.panel-next', says: say('stations.logits_title') },
  { name: 'sample', term: 'sampling', label: say('stations.sample'), shows: '.panel-next', says: say('stations.sample_title') },
  { name: 'stop', term: 'stop rule', label: say('stations.stop'), shows: '', says: say('stations.stop_title') },
];

/** Counts of tokens that remain, without repeating a stage that removed none: 49,152 → 50 → 6. */
export function keptChain(stages) {
  const counts = [];
  for (const { kept } of stages) if (kept !== counts.at(-1)) counts.push(kept);
  const shown = counts.length > 4 ? [counts[0], ...counts.slice(-3)] : counts;
  return shown.map(formatCount).join(' → ');
}

/** "3–5" for a run of positions, "4" for one. */
function positionRange(positions) {
  return positions.length > 1
    ? `${formatCount(positions[0])}–${formatCount(positions.at(-1))}`
    : formatCount(positions[0]);
}

/** The drawn token as it stands in the sequence: there it is known which bytes of which character it holds. */
function drawnPiece(store, step) {
  const token = store.tokens[drawnPosition(store, step.index)];
  return token?.id === step.draw.token_id ? token : store.pieces.get(step.draw.token_id);
}

/** What filled a released cache again: ", cache rebuilt by prefilling 41 tokens, 4 from the shared prompt" */
function rebuiltHow({ rebuilt_tokens: again, recovered_tokens: shared }) {
  if (!again && !shared) return '';
  const parts = [again && say('stations.rebuilt', { n: again }), shared && say('stations.shared', { shared: formatCount(shared) })];
  return say('stations.cache_rebuilt', { how: parts.filter(Boolean).join(', ') });
}

/** "with 3 others": who was in the same forward */
const companyOf = (step) => say('stations.company', { n: step.batch_size - 1 });

const DESCRIBE = {
  in(step, { tokens, pieces }) {
    const many = step.input_ids.length > 1;
    if (many) return { main: say('counted.token', { n: step.input_ids.length }), rest: say('stations.many_in', { positions: positionRange(step.positions), how: howRead(step) }) };
    return {
      piece: tokens[step.positions[0]] ?? pieces.get(step.input_ids[0]),
      rest: [say('stations.one_in', { id: step.input_ids[0], position: positionRange(step.positions) }), rebuiltHow(step)].filter(Boolean).join(', '),
    };
  },
  forward(step, { model, limits, settings }) {
    const fed = tokensRead(step);
    if (!fed) return { main: say('stations.no_pass'), rest: say('stations.kv_copied', { kv_len: formatCount(step.kv_len) }) };
    const { num_layers: layers, num_heads: heads, num_kv_heads: kvHeads, head_dim: dim } = model;
    const reads = fed > 1 ? say('stations.reads_up_to', { keys: formatCount(step.kv_len) }) : say('stations.reads', { n: step.kv_len });
    const isRun = fed === 1 && Boolean(step.timing_ms); // a rebuilt record came out of a prefill
    const company = isRun ? companyOf(step) : '';
    const isTold = company && (step.batch_size > 1 || settings?.solo || !limits.models);
    return {
      main: say('counted.layer', { n: layers }),
      rest: `${isTold ? `${company} · ` : ''}+${formatCount(fed)} k,v · ${reads}`,
      title: [
        say('stations.shapes', { layers, fed, heads, dim, kv_heads: kvHeads }),
        say('stations.appended', { kv_len: formatCount(step.kv_len) }),
        company && say('stations.shared_pass', { company }),
      ].filter(Boolean).join(' '),
    };
  },
  logits(step, { model }) {
    const rows = step.logit_rows;
    return {
      main: `${formatCount(Math.max(1, rows))} × ${formatCount(model.vocab_size)}`,
      rest: rows ? say('stations.rows', { n: rows }) : say('stations.kept'),
      title: say('stations.last_row'),
    };
  },
  sample(step, store) {
    const { draw } = step;
    const chain = keptChain(step.stages);
    const how = {
      greedy: say('stations.greedy'),
      forced: say('stations.forced', { token: quotedToken(store.pieces.get(draw.drawn_id)) }),
    }[draw.mode];
    const drew = how ?? (draw.u === null ? draw.mode : `u = ${draw.u.toFixed(3)}`);
    return {
      piece: drawnPiece(store, step),
      rest: `${chain} · ${drew}`,
      title: [
        say('stations.probabilities', { after: formatProb(draw.final_prob), before: formatProb(draw.raw_prob), rank: formatCount(draw.raw_rank) }),
        `${step.stages.map((stage) => say('stations.stage_kept', { stage: stage.label, n: stage.kept })).join('; ')}.`,
        penalisedWords(step, store.pieces),
      ].filter(Boolean).join(' '),
    };
  },
  stop(step, store) {
    const fired = step.stops.filter((stop) => stop.fired);
    const rest = fired.length ? fired.map((stop) => stop.label).join(', ') : say('stations.none_fired', { rules: step.stops.length });
    const penalised = penalisedWords(step, store.pieces);
    return {
      main: step.finish_reason ? say('stations.ends') : say('stations.go_on'),
      rest: penalised ? `${rest} · ${say('stations.penalised')}` : rest,
      title: penalised,
      alarm: Boolean(step.finish_reason),
    };
  },
};

const EMPTY = {
  in: say('stations.in_empty'),
  forward: say('stations.forward_empty'),
  logits: say('stations.logits_empty'),
  sample: say('stations.sample_empty'),
  stop: say('stations.stop_empty'),
};

export class Stations {
  /** @param {(selector: string) => void} flash shows a panel */
  constructor(root, store, flash) {
    this.store = store;
    this.parts = STATIONS.map((station, i) => this.#station(station, i, flash));
    this.back = make(
      'div.way-back',
      {},
      make('span.way-back-line'),
      make('span.way-back-words'),
      make('span.way-back-line'),
    );
    const line = make(
      'div.stations',
      { role: 'group', 'aria-label': say('stations.label') },
      ...this.parts.map((part) => part.button),
    );
    const save = takeAway({ name: 'loop', title: say('step_page.loop'), table: () => this.#table(), picture: () => ({ root, parts: [line, this.back] }) });
    this.back.append(save);
    root.append(line, this.back);
    this.stopButton = this.parts.at(-1).button;
    this.forwardButton = this.parts[1].button;
  }

  #station({ name, term, label, shows, says }, i, flash) {
    const main = make('span.station-main');
    const rest = make('span.station-rest');
    const arrow = i < STATIONS.length - 1 ? make('span.station-arrow', {}, icon('arrow', 16)) : icon('down', 16);
    const button = make(
      'button.station',
      { data: { station: name, term } },
      make('span.station-label', {}, make('i', {}, String(i + 1)), label, name === 'forward' ? icon('down', 14) : null),
      make('span.station-words', {}, main, ' ', rest),
      arrow,
    );
    if (shows) button.addEventListener('click', () => flash(shows));
    return { name, label, says, button, main, rest };
  }

  /** @param {number} [until] how many stations, from the first on, know of the step yet */
  draw(changes, until = STATIONS.length) {
    if (!['steps', 'select', 'model', 'session', 'tokens'].some((name) => changes.has(name))) return;
    const step = this.store.selected;
    this.forwardButton.disabled = this.store.isOpened || Boolean(this.store.following.lead); // inside it is a replay by the model
    for (const part of this.parts.slice(0, until)) this.#drawStation(part, step);
    if (until === STATIONS.length) this.#drawBack(step);
  }

  #drawStation({ name, says, button, main, rest }, step) {
    button.classList.toggle('empty', !step);
    const {
      piece,
      main: words,
      rest: more,
      title = '',
      alarm = false,
    } = step && this.store.model ? DESCRIBE[name](step, this.store) : { main: EMPTY[name], rest: '' };
    if (piece) {
      renderToken(main, piece);
    } else {
      main.classList.remove('token-text');
      setText(main, words);
    }
    setText(rest, more);
    button.classList.toggle('alarm', alarm);
    button.dataset.drew = name === 'sample' ? (step?.draw.mode ?? '') : '';
    button.title = [says, title].filter(Boolean).join('. ');
  }

  /** What each station says, as a table. */
  #table() {
    const words = (node) => node.textContent.trim();
    return { columns: say('stations.columns').split(', '), rows: this.parts.map(({ label, main, rest }) => [label, words(main), words(rest)]) };
  }

  /** The arrow back to the start: what goes in next, or why nothing does. */
  #drawBack(step) {
    const words = this.back.children[1];
    this.back.dataset.state = !step ? 'empty' : step.finish_reason ? 'stopped' : 'round';
    if (!step) return setText(words, say('stations.round'));
    if (step.finish_reason) return setText(words, say('stations.stopped', { why: FINISH_WORDS[step.finish_reason] ?? step.finish_reason }));
    const token = renderToken(make('b'), drawnPiece(this.store, step));
    return words.replaceChildren(...sayNodes('stations.goes_in_next', { token, position: formatCount(drawnPosition(this.store, step.index)) }));
  }
}
