/**
 * One tooltip for a panel: rows of "name value", placed beside the pointer and always inside the view.
 *
 * It opens in the browser's top layer, so neither a scrolled card nor a transformed parent can cut it off.
 */

import { keepFromTranslators } from './dom.js';

const TOOLTIP_GAP = 14;

/**
 * @param {HTMLElement} root the panel's element; colours and type size are inherited from it
 * @returns {{show: (x: number, y: number, title: string, rows: Array<[string, string]>, note?: string) => void, hide: () => void}}
 */
export function makeTooltip(root) {
  const box = document.createElement('div');
  box.className = 'lp-tip';
  box.setAttribute('role', 'tooltip');
  keepFromTranslators(box); // names of tokens and numbers, and gone before a translator is done
  const layered = typeof box.showPopover === 'function';
  if (layered) box.popover = 'manual';
  else box.hidden = true;
  root.append(box);
  let open = false;
  let written = '';

  const write = (title, rows, note) => {
    const key = JSON.stringify([title, rows, note]);
    if (key === written) return;
    written = key;
    const heading = document.createElement('b');
    heading.textContent = title;
    const list = document.createElement('dl');
    for (const [name, value] of rows) {
      const term = document.createElement('dt');
      term.textContent = name;
      const detail = document.createElement('dd');
      detail.textContent = value;
      list.append(term, detail);
    }
    box.replaceChildren(heading, list);
    if (note) {
      const line = document.createElement('p');
      line.textContent = note;
      box.append(line);
    }
  };

  return {
    show(x, y, title, rows, note = '') {
      write(title, rows, note);
      if (!open) {
        open = true;
        if (layered) box.showPopover();
        else box.hidden = false;
      }
      const width = box.offsetWidth;
      const height = box.offsetHeight;
      const left = x + TOOLTIP_GAP + width < innerWidth - 6 ? x + TOOLTIP_GAP : x - TOOLTIP_GAP - width;
      const top = y + TOOLTIP_GAP + height < innerHeight - 6 ? y + TOOLTIP_GAP : y - TOOLTIP_GAP - height;
      box.style.left = `${Math.max(6, Math.min(innerWidth - width - 6, left))}px`;
      box.style.top = `${Math.max(6, top)}px`;
    },
    hide() {
      if (!open) return;
      open = false;
      if (layered) box.hidePopover();
      else box.hidden = true;
    },
  };
}
