/**
 * Inside the forward pass: one decoder layer of the selected step, box by box, with what stands before and after.
 *
 * Every box says the shape of what leaves it and its L2 norm, measured in a replay of the step's newest token. The
 * strip above shows the residual stream over all layers; a layer chosen there is chosen everywhere.
 *
 * For tests: .block-view[data-state][data-layer], .block-box[data-term] .block-norm, .block-strip canvas, .block-table
 */

import { make, setText } from '../../drawing/dom.js';
import { makeSurface } from '../../drawing/canvas.js';
import { CanvasGrid } from '../../drawing/canvas_grid.js';
import { formatCount, formatNumber, formatShare } from '../../drawing/format.js';
import { forgetPalette } from '../../drawing/palette.js';
import { toggleButton } from '../../drawing/panel_frame.js';
import { renderToken } from '../../drawing/pieces.js';
import { say } from '../../drawing/say.js';
import { tableTwin } from '../../drawing/table_twin.js';
import { takeAway } from '../../picture/take_away.js';
import { tokenAtPosition } from '../../drawing/token_names.js';
import { BlockData } from '../../store/block_data.js';
import { blockBoxes, blockTable, endBoxes, normText } from './boxes.js';
import { layerAt, paintResiduals } from './residual_chart.js';

export class BlockView {
  /** @param {() => void} resized called when what is shown may have another size */
  constructor(store, resized) {
    this.store = store;
    this.resized = resized;
    this.data = new BlockData(store, () => this.draw());
    this.blocks = null; // the last that came: it stays on screen, dimmed, while the next is on its way
    this.hover = null;
    this.said = make('p.block-said', { role: 'status' });
    const strip = make('div.lp-canvas.block-strip');
    this.surface = makeSurface(strip, (surface) => this.blocks && paintResiduals(surface, this.blocks.layers, { chosen: store.sel.layer, hover: this.hover }));
    this.grid = new CanvasGrid(this.surface.canvas, say('block.strip_label'), { move: (_, layers) => this.#choose(store.sel.layer + Math.max(-1e4, Math.min(1e4, layers))) });
    this.#listen(this.surface.canvas);
    this.layer = make('b.block-layer', { 'aria-live': 'polite' });
    this.back = make('button.small-button', { 'aria-label': say('block.layer_before'), title: say('block.layer_before'), onclick: () => this.#choose(store.sel.layer - 1) }, '−');
    this.next = make('button.small-button', { 'aria-label': say('block.layer_after'), title: say('block.layer_after'), onclick: () => this.#choose(store.sel.layer + 1) }, '+');
    this.key = make('span.block-key', {}, say('block.strip_key'));
    this.flow = make('div.block-flow');
    this.table = make('div.block-table', { hidden: true });
    const asTable = toggleButton(say('block.table'), say('block.table_title'), (on) => {
      this.table.hidden = !on;
      this.flow.hidden = on;
      this.draw();
    });
    const save = takeAway({
      name: 'block', title: say('block.title'), table: () => blockTable(this.blocks), prepare: () => this.#asPicture(),
      picture: () => ({ root: this.root, parts: [this.said, strip, this.flow], note: [this.layer.textContent, this.key.textContent].join(' · ') }),
    });
    const bar = make('div.block-bar', {}, this.back, this.layer, this.next, this.key, asTable, save);
    this.root = make('div.block-view', {}, this.said, bar, strip, this.flow, this.table);
  }

  /** Fill the popover's body, or draw again what fills it. */
  build(body) {
    if (this.root.parentElement !== body) body.replaceChildren(this.root);
    this.draw();
  }

  /** The boxes in the table's place, while a picture of them is taken. */
  #asPicture() {
    const isTable = !this.table.hidden;
    const show = (asTable) => {
      this.table.hidden = !asTable;
      this.flow.hidden = asTable;
      this.draw();
    };
    if (isTable) show(false);
    return () => isTable && show(true);
  }

  #choose(layer) {
    this.store.select({ layer });
  }

  #listen(canvas) {
    const at = (event) => (this.blocks ? layerAt(event.offsetX, this.surface.w, this.blocks.layers.length) : null);
    const hover = (layer) => {
      if (layer === this.hover) return;
      this.hover = layer;
      canvas.title = layer === null ? '' : this.#words(layer);
      this.surface.ask();
    };
    canvas.addEventListener('pointermove', (event) => hover(at(event)));
    canvas.addEventListener('pointerleave', () => hover(null));
    canvas.addEventListener('click', (event) => at(event) !== null && this.#choose(at(event)));
  }

  /** A layer of the strip in words. */
  #words(index) {
    const { left, attention_added: attention, mlp_added: mlp } = this.blocks.layers[index];
    const norm = normText(left);
    return attention === null ? say('block.strip_closed', { layer: index, norm }) : say('block.strip_cell', { layer: index, norm, attention: normText(attention), mlp: normText(mlp) });
  }

  draw() {
    if (!this.root.isConnected) return;
    const step = this.store.selected;
    if (step) this.data.want(step);
    const state = step ? this.data.state(step) : 'empty';
    this.root.dataset.state = state;
    this.root.dataset.layer = this.store.sel.layer;
    this.blocks = (step && this.data.of(step)) ?? (state === 'failed' ? null : this.blocks);
    if (!step || this.blocks?.layers.length !== this.store.model?.num_layers) this.blocks = null;
    setText(this.said, this.#status(step, state));
    for (const part of [this.surface.host, this.flow.parentElement.querySelector('.block-bar')]) part.hidden = !this.blocks;
    if (this.blocks) this.#drawLayer(step);
    else this.flow.replaceChildren();
    this.resized();
  }

  #status(step, state) {
    if (!step) return say('block.empty');
    const words = { asked: say('block.asked', { step: step.index }), missing: say('block.asked', { step: step.index }), playing: say('block.playing'), failed: this.data.message(step) };
    return words[state] ?? say('block.whose', { token: tokenAtPosition(this.store.tokens, step.kv_len - 1), step: step.index });
  }

  #drawLayer(step) {
    const { layer } = this.store.sel;
    const last = this.blocks.layers.length - 1;
    forgetPalette(this.root);
    this.surface.paint();
    setText(this.layer, say('block.layer', { layer, last }));
    this.back.disabled = layer === 0;
    this.next.disabled = layer === last;
    this.grid.say({ row: 0, column: layer, rows: 1, columns: last + 1, words: this.#words(layer) });
    if (!this.table.hidden) {
      const { columns, rows } = blockTable(this.blocks);
      return this.table.replaceChildren(tableTwin(columns, rows, say('block.table_caption', { step: this.blocks.step })));
    }
    const { before, after } = endBoxes(this.blocks);
    const { attention, mlp, isParallel } = blockBoxes(this.blocks, layer, step.kv_len);
    const token = renderToken(make('span.block-token'), this.store.tokens[step.kv_len - 1]);
    return this.flow.replaceChildren(
      make('div.block-end', {}, make('div.block-id', {}, token, make('small', {}, say('block_view.id', { id: this.store.tokens[step.kv_len - 1]?.id }))), ...before.map(boxNode), passed(layer)),
      make('div.block-body', { role: 'group', 'aria-label': say('block.layer', { layer, last }) },
        row(say('block.branch_attention'), attention), row(say('block.branch_mlp'), mlp),
        isParallel ? make('p.block-note', {}, say('block.parallel')) : null,
        this.blocks.closed ? make('p.block-note', {}, this.blocks.closed) : null),
      make('div.block-end', {}, passed(last - layer), ...after.map(boxNode)),
    );
  }

  destroy() {
    this.data.stop();
    this.surface.destroy();
  }
}

/** How many layers lie between the ends and the one that is open. */
function passed(count) {
  return make('p.block-passed', {}, count ? say('block.more_layers', { n: count }) : '');
}

function row(title, boxes) {
  return make('div.block-branch', {}, make('h3', {}, title), make('ol', {}, ...boxes.map((one) => make('li', {}, boxNode(one)))));
}

/** A box: its name, the shape of what leaves it, its norm; where it is a sum, how much was added. */
function boxNode({ name, term, shape, norms, isResidual, sum }) {
  const node = make(`div.block-box${isResidual ? '.is-residual' : ''}`, { tabIndex: 0, role: 'group', 'aria-label': name, data: { term } },
    make('b.block-name', {}, name), make('span.block-shape', {}, shape));
  if (norms.length) node.append(make('span.block-norm', {}, ...norms.flatMap(([sign, norm]) => [make('span', {}, make('i', {}, `‖${sign || 'x'}‖`), ` ${normText(norm)}`), ' '])));
  if (sum) node.append(shareNode(sum));
  return node;
}

function shareNode({ added, of, both }) {
  const share = added / of;
  const words = addedWords(added, share, both);
  return make('span.block-share', {}, make('span.block-meter', { 'aria-hidden': 'true' }, make('i', { style: `width:${Math.min(100, 100 * share).toFixed(1)}%` })), words);
}

function addedWords(added, share, both) {
  if (both !== null) return say('block.added_both', { attention: normText(both), mlp: normText(added) });
  if (share > 1) return say('block.added_times', { added: normText(added), times: formatNumber(share) });
  return say('block.added', { added: normText(added), share: formatShare(share) });
}
