/**
 * Which columns of a long row are in view.
 *
 * Columns get narrower until `narrowest`; after that the window pans. It follows the newest column until
 * somebody pans away, and follows again once the newest is back in view.
 */
export class ColumnWindow {
  /** @param {{narrowest: number, spare?: number}} options width in CSS pixels; spare: columns left empty after the last */
  constructor({ narrowest, spare = 0 }) {
    this.widest = Infinity; // set by whoever draws, to the size of its type
    this.narrowest = narrowest;
    this.spare = spare;
    this.follow = true;
    this.first = 0;
    this.count = 0;
    this.visible = 0;
    this.width = narrowest;
  }

  /**
   * Lay `count` columns out in `room` CSS pixels, whole device pixels each, with `shown` kept in view.
   * @param {number} shown the column that has to be visible (the selected one)
   */
  fit(count, room, dpr, shown) {
    const wanted = Math.max(this.narrowest, Math.min(this.widest, room / (count + this.spare)));
    this.width = Math.max(1, Math.floor(wanted * dpr)) / dpr;
    this.visible = Math.max(1, Math.min(count, Math.floor(room / this.width) - this.spare));
    this.count = count;
    const last = Math.max(0, count - this.visible);
    if (this.follow) {
      if (shown < this.first) this.first = shown;
      if (shown >= this.first + this.visible) this.first = shown - this.visible + 1;
      if (shown >= count - 1) this.first = last;
    }
    this.first = Math.max(0, Math.min(last, this.first));
  }

  /** One past the last column in view. */
  get end() {
    return Math.min(this.count, this.first + this.visible);
  }

  get pans() {
    return this.visible < this.count;
  }

  /** Pan as little as it takes to have a column in view. */
  show(column) {
    if (column < this.first) this.pan(column - this.first);
    else if (column >= this.end) this.pan(column - this.end + 1);
  }

  /** Move by `columns`; returns whether anything moved. */
  pan(columns) {
    const last = Math.max(0, this.count - this.visible);
    const next = Math.max(0, Math.min(last, this.first + columns));
    const moved = next !== this.first;
    this.first = next;
    this.follow = next === last;
    return moved;
  }
}

/**
 * Let a wheel or a drag over `element` pan `columns`. A drag that moved is not a click.
 * @returns {{moved: () => boolean, destroy: () => void}}
 */
export function panWith(element, columns, ask) {
  let from = null;
  let moved = false;
  let rest = 0;
  const by = (pixels) => {
    rest += pixels / columns.width;
    const whole = Math.trunc(rest);
    rest -= whole;
    if (whole && columns.pan(whole)) ask();
  };
  const wheel = (event) => {
    const sideways = event.shiftKey ? event.deltaY : event.deltaX;
    if (!columns.pans || !sideways) return;
    event.preventDefault();
    by(sideways);
  };
  const down = (event) => {
    from = event.clientX;
    moved = false;
  };
  const move = (event) => {
    if (from === null || !event.buttons || !columns.pans) return;
    if (Math.abs(event.clientX - from) < 4 && !moved) return;
    moved = true;
    by(from - event.clientX);
    from = event.clientX;
  };
  const up = () => {
    from = null;
  };
  const listeners = { wheel, pointerdown: down, pointermove: move, pointerup: up, pointercancel: up };
  for (const [type, listener] of Object.entries(listeners)) {
    element.addEventListener(type, listener, type === 'wheel' ? { passive: false } : undefined);
  }
  return {
    moved: () => moved,
    destroy: () => {
      for (const [type, listener] of Object.entries(listeners)) element.removeEventListener(type, listener);
    },
  };
}
