/**
 * A canvas that is a grid of cells: arrows move a cursor over it, Enter takes the cell, and what it stands on is spoken.
 *
 * A canvas has no cells that a screen reader could find. The one under the cursor therefore stands inside the canvas,
 * where browsers look for what a picture means, and the grid names it as the active one. It is a new element each
 * time: a cell that only changed its words would not be read again.
 *
 * For tests: canvas[role=grid][aria-activedescendant], in it [role=gridcell]
 */

import { make } from './dom.js';

const GRID_MOVES = {
  ArrowUp: [-1, 0],
  ArrowDown: [1, 0],
  ArrowLeft: [0, -1],
  ArrowRight: [0, 1],
  Home: [0, -Infinity],
  End: [0, Infinity],
};
let gridCellCount = 0;

export class CanvasGrid {
  /**
   * @param {string} label what the grid shows and what the keys do
   * @param {{move: (rows: number, columns: number) => void, take?: () => void, enter?: () => void, leave?: () => void}} on
   *   move: by how many cells, infinite for the end of a row; enter and leave: the keyboard's focus
   */
  constructor(canvas, label, on) {
    this.canvas = canvas;
    this.row = make('div', { role: 'row' });
    canvas.tabIndex = 0;
    canvas.setAttribute('role', 'grid');
    canvas.setAttribute('aria-label', label);
    canvas.append(this.row);
    canvas.addEventListener('keydown', (event) => this.#key(event, on));
    canvas.addEventListener('focus', () => this.hasKeys && on.enter?.());
    canvas.addEventListener('blur', () => on.leave?.());
    canvas.addEventListener('click', (event) => event.detail && canvas.blur()); // the arrows stay the run's
  }

  /** Did somebody come here by keyboard? */
  get hasKeys() {
    return this.canvas.matches(':focus-visible');
  }

  #key(event, on) {
    if (event.ctrlKey || event.metaKey || event.altKey) return;
    const move = GRID_MOVES[event.key];
    if (move) on.move(...move);
    else if (event.key === 'Enter' && on.take) on.take();
    else return;
    event.preventDefault();
    event.stopPropagation();
  }

  /** Name the cell under the cursor, of how many. */
  say({ row, column, rows, columns, words }) {
    const key = `${row}/${column}/${rows}/${columns}/${words}`;
    if (key === this.said) return;
    this.said = key;
    const id = `cell-${++gridCellCount}`;
    const cell = make('div', { id, role: 'gridcell', 'aria-colindex': column + 1, 'aria-selected': 'true' }, words);
    this.row.setAttribute('aria-rowindex', row + 1);
    this.row.replaceChildren(cell);
    this.canvas.setAttribute('aria-rowcount', rows);
    this.canvas.setAttribute('aria-colcount', columns);
    this.canvas.setAttribute('aria-activedescendant', id);
  }
}
