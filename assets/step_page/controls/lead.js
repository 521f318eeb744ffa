/**
 * Lead a class: a short code, a link and its picture, how many follow; and what this page looks at, said to all of them.
 *
 * For tests: .lead-button[data-followers], .lead-code, .lead-link, .lead-qr, .lead-begin, .lead-end, .lead-count
 */

import { AskClass } from './ask_class.js';
import { icon, make, setText } from '../drawing/dom.js';
import { Popover } from '../drawing/overlay.js';
import { say } from '../drawing/say.js';
import { copyButton } from '../drawing/table_twin.js';

const LOOK_EVERY_MS = 80;
const QUIET_ZONE = 2;

/** "ABCDEFGH" as it is read aloud: "ABCD EFGH". */
export function spelledCode(code) {
  return code.replace(/^(.{4})(.+)$/, '$1 $2');
}

/** A QR picture from its rows of "0" and "1". */
function qrPicture(rows) {
  const size = rows.length + 2 * QUIET_ZONE;
  const svg = document.createElementNS('http://www.w3.org/2000/svg', 'svg');
  const dark = rows.flatMap((row, y) => [...row].flatMap((cell, x) => (cell === '1' ? [`M${x + QUIET_ZONE} ${y + QUIET_ZONE}h1v1h-1z`] : [])));
  const path = document.createElementNS('http://www.w3.org/2000/svg', 'path');
  path.setAttribute('d', dark.join(''));
  svg.append(path);
  for (const [name, value] of Object.entries({ viewBox: `0 0 ${size} ${size}`, class: 'lead-qr', role: 'img', 'aria-label': say('lead.qr'), 'shape-rendering': 'crispEdges' })) svg.setAttribute(name, value);
  return svg;
}

export class Lead {
  /** @param {{presenter: object, windows: Record<string, {isOpen: boolean}>}} parts whose state followers share */
  constructor(root, store, { presenter, windows }) {
    Object.assign(this, { root, store, presenter, windows });
    this.given = null; // {code, link, qr}: what the server gave for the lead that goes on
    this.said = '';
    this.timer = 0;
    this.ask = new AskClass(store);
    this.buttonWords = make('span', {}, say('lead.button'));
    this.button = make('button.quiet.lead-button', { title: say('lead.button_title'), data: { live: '' } }, icon('lead', 15), this.buttonWords);
    this.onAct = () => store.leading && this.#tell(); // a window that opens is no change of the store
    for (const kind of ['click', 'keyup']) root.addEventListener(kind, this.onAct);
    this.popover = new Popover(root, this.button, { title: say('lead.title'), hint: say('lead.hint'), name: 'lead' }, (body) => this.#build(body));
  }

  #build(body) {
    this.body = body;
    this.count = make('p.lead-count', { role: 'status' });
    this.error = make('p.error-words', { role: 'alert' });
    if (this.store.leading && !this.given) this.#begin(); // a reload: ask for code and picture again
    body.replaceChildren(...(this.store.leading && this.given ? this.#going() : this.#offer()), this.error);
    this.#drawCount();
  }

  #offer() {
    return [make('p', {}, say('lead.says')), make('button.primary.lead-begin', { onclick: () => this.#begin() }, say('lead.begin'))];
  }

  #going() {
    const { code, link, qr } = this.given;
    return [
      make('div.lead-top', {}, qrPicture(qr), make('div', {}, make('p.lead-code', {}, spelledCode(code)), make('p.lead-link', {}, link))),
      make('div.lead-ways', {}, copyButton(() => link, say('lead.copy')), make('button.small-button.lead-end', { onclick: () => this.#end() }, say('lead.end'))),
      this.count,
      this.ask.node,
    ];
  }

  async #begin() {
    try {
      this.given = await this.store.send('lead', { address: location.origin + location.pathname });
      this.said = '';
      this.#tell();
      this.#build(this.body);
    } catch (error) {
      setText(this.error, error.message);
    }
  }

  async #end() {
    await this.store.send('lead_end').catch((error) => setText(this.error, error.message));
    this.given = null;
    this.#build(this.body);
  }

  draw() {
    const { leading } = this.store;
    this.button.hidden = Boolean(this.store.following.lead);
    this.root.toggleAttribute('data-leads', Boolean(leading));
    this.button.dataset.followers = leading ? leading.followers : '';
    setText(this.buttonWords, leading ? say('lead.button_leads', { n: leading.followers }) : say('lead.button'));
    this.#drawCount();
    if (leading) this.ask.draw();
    if (this.popover.isOpen) this.popover.place();
    if (leading) this.#tell();
  }

  #drawCount() {
    const { leading } = this.store;
    if (!this.count || !leading) return;
    const { followers, behind } = leading;
    setText(this.count, behind ? say('lead.count_behind', { n: followers, behind }) : say('lead.count', { n: followers }));
  }

  /** Say what is looked at, where it has changed, a few times a second. */
  #tell() {
    this.timer ||= setTimeout(() => {
      this.timer = 0;
      const { store, presenter, windows } = this;
      const { step, layer, head } = store.sel;
      const window = Object.keys(windows).find((name) => windows[name].isOpen) ?? null;
      const lesson = store.lesson ? `${store.lesson.id}/${store.lesson.scene}` : null;
      const look = { step, layer, head, presents: presenter.on ? presenter.chosen : null, window, lesson };
      const text = JSON.stringify(look);
      if (text === this.said || !store.leading) return;
      this.said = text;
      store.line.look(look);
    }, LOOK_EVERY_MS);
  }

  destroy() {
    clearTimeout(this.timer);
    for (const kind of ['click', 'keyup']) this.root.removeEventListener(kind, this.onAct);
    this.popover.destroy();
  }
}
