/**
 * The two kinds of window over the page: a sheet (modal, from the side) and a popover (beside its button, the page goes on).
 *
 * Both are shown in the browser's top layer, so nothing on Streamlit's page can cover or clip them.
 */

import { say } from './say.js';
import { make, icon, keepFromTranslators } from './dom.js';

let overlayCount = 0;

function overlayHead(title, hint, close, id) {
  return make(
    'header.overlay-head',
    {},
    make('div', {}, make('h2', { id }, title), hint ? keepFromTranslators(make('p', {}, hint), hint.includes('“')) : null),
    make('button.icon-button', { 'aria-label': say('overlay.close'), title: say('overlay.close_title'), onclick: close }, icon('cross')),
  );
}

/** What holds the focus because it was pointed at, not because somebody tabbed to it, gives it back to the page. */
function letGoOfPointed(root) {
  const focused = root.getRootNode().activeElement;
  if (focused?.matches('button:not(:focus-visible)')) focused.blur();
}

/**
 * @param {HTMLElement} root the page
 * @param {{title: string, hint?: string, name: string, wide?: boolean}} words
 * @param {(body: HTMLElement, close: () => void) => void} build fills the body
 */
export function openSheet(root, { title, hint = '', name, wide = false }, build) {
  root.querySelector(`dialog.sheet-${name}`)?.remove();
  const id = `overlay-${++overlayCount}`;
  const dialog = make(`dialog.sheet.sheet-${name}${wide ? '.wide' : ''}`, { 'aria-labelledby': id });
  const close = () => dialog.close();
  const body = make('div.overlay-body');
  dialog.append(overlayHead(title, hint, close, id), body);
  dialog.addEventListener('close', () => dialog.remove());
  dialog.addEventListener('click', (event) => event.target === dialog && close()); // the backdrop
  root.append(dialog);
  build(body, close);
  letGoOfPointed(root); // else closing gives the focus back to the button, and Space opens the sheet again
  dialog.showModal();
  return { body, close, dialog };
}

/**
 * A window beside its button. Opens and closes with the button, with Esc, and with a click elsewhere on the page.
 * The focus moves in and back where it was opened by keyboard; opened with the mouse, the keys still go to the run.
 */
export class Popover {
  /** @param {{title: string, hint?: string, name: string, side?: 'above'|'below', keep?: string, above?: string}} words */
  constructor(root, anchor, words, build) {
    const id = `overlay-${++overlayCount}`;
    this.anchor = anchor;
    this.side = words.side ?? 'below';
    this.keep = words.keep ?? ''; // clicks inside this selector leave it open
    this.above = words.above ?? ''; // what it leaves uncovered at the foot of the window
    this.body = make('div.overlay-body');
    this.node = make(
      `div.popover.popover-${words.name}`,
      { role: 'dialog', 'aria-labelledby': id, popover: 'manual' },
      overlayHead(words.title, words.hint, () => this.close(), id),
      this.body,
    );
    anchor.setAttribute('aria-haspopup', 'dialog');
    anchor.setAttribute('aria-expanded', 'false');
    anchor.addEventListener('click', (event) => this.toggle(event.detail === 0));
    root.append(this.node);
    this.root = root;
    this.build = build;
    this.onPress = (event) => this.#press(event);
    this.onMove = () => this.place();
  }

  get isOpen() {
    return this.node.matches(':popover-open');
  }

  toggle(byKeyboard) {
    if (this.isOpen) this.close();
    else this.open(byKeyboard);
  }

  open(byKeyboard = false) {
    if (this.isOpen) return;
    this.byKeyboard = byKeyboard;
    this.body.replaceChildren();
    this.build(this.body, () => this.close());
    this.node.showPopover();
    this.anchor.setAttribute('aria-expanded', 'true');
    this.place();
    document.addEventListener('pointerdown', this.onPress, true);
    document.addEventListener('scroll', this.onMove, { capture: true, passive: true });
    window.addEventListener('resize', this.onMove);
    if (byKeyboard) this.node.querySelector('.overlay-body :is(button, input)')?.focus({ preventScroll: true });
  }

  close() {
    if (!this.isOpen) return;
    const hadFocus = this.node.contains(this.root.getRootNode().activeElement);
    this.node.hidePopover();
    this.anchor.setAttribute('aria-expanded', 'false');
    if (hadFocus && this.byKeyboard) this.anchor.focus({ preventScroll: true });
    document.removeEventListener('pointerdown', this.onPress, true);
    document.removeEventListener('scroll', this.onMove, { capture: true });
    window.removeEventListener('resize', this.onMove);
  }

  /** Rebuild what is shown, if it is shown. */
  refresh() {
    if (this.isOpen) this.build(this.body, () => this.close());
  }

  #press(event) {
    const path = event.composedPath();
    if (path.includes(this.node) || path.includes(this.anchor)) return;
    if (path.some((node) => node.matches?.('.lesson'))) return; // a lesson leads through what it has opened
    if (this.keep && path.some((node) => node.matches?.(this.keep))) return;
    this.close();
  }

  /** A lesson at the right of the page stays in view. */
  #freeWidth() {
    const lesson = this.root.querySelector('.lesson')?.getBoundingClientRect();
    return lesson?.width && lesson.left > innerWidth / 2 ? lesson.left : innerWidth;
  }

  /** Beside the button, kept inside the window. */
  place() {
    const anchor = this.anchor.getBoundingClientRect();
    const box = this.node.getBoundingClientRect();
    const margin = 10;
    const end = this.#freeWidth();
    const left = Math.max(margin, Math.min(anchor.right - box.width, end - box.width - margin));
    const foot = (this.above && this.root.querySelector(this.above)?.getBoundingClientRect().top) || innerHeight;
    const below = anchor.bottom + 8;
    const above = anchor.top - box.height - 8;
    const top =
      this.side === 'above'
        ? Math.max(margin, above)
        : Math.min(below, Math.max(margin, foot - box.height - margin));
    this.node.style.left = `${left}px`;
    this.node.style.top = `${top}px`;
  }

  destroy() {
    this.close();
    this.node.remove();
  }
}
