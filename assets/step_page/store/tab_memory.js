/**
 * What this tab remembers over a reload: which session it had, and the recipe to rebuild it from.
 *
 * The session's id lives in the tab's own storage and never in the URL: people share URLs. The URL carries
 * settings and the step looked at. A link that asks for something else than the tab had starts afresh.
 */

const MEMORY_KEY = 'loupe.session';
const LEFT_SID = 'left'; // no server knows a session of this name: it is made from its recipe
const ADDRESS_AFTER_MS = 250;
const LOOKED_AT = ['step', 'layer', 'head'];
const LESSON_AT = ['lesson', 'scene'];

/** The query without what is merely looked at and without the lesson, in a fixed order. */
function settingsOf(query) {
  const params = new URLSearchParams(query);
  for (const name of [...LOOKED_AT, ...LESSON_AT]) params.delete(name);
  params.sort();
  return params.toString();
}

export class TabMemory {
  #kept = '';
  #path = null; // of the Step page; null while it is not shown
  #shown = null; // what is on screen: session, recipe, and the query that says it
  #former = ''; // the query before this one: a reload that comes at once may still ask for it
  #timer = 0;
  #beside = {}; // what the address says beside the run: the lesson
  #isAfresh; // the link that opened the page asks for something else than the tab had

  constructor() {
    const asked = settingsOf(location.search);
    this.query = location.search.slice(1); // what the page was opened with
    this.#isAfresh = asked !== '' && !(this.#read().addresses ?? []).map(settingsOf).includes(asked);
  }

  #read() {
    try {
      return JSON.parse(sessionStorage.getItem(MEMORY_KEY)) ?? {};
    } catch {
      return {}; // storage switched off, or not ours
    }
  }

  /** What a connection opens with: {query, session: {sid, recipe, solo} or null}. */
  greeting() {
    const { sid, recipe, solo } = this.#read();
    return { query: this.query, session: sid && !this.#isAfresh ? { sid, recipe, solo: solo === true } : null };
  }

  /** The Step page is shown: from now on, while this is the address, it says what is on screen. */
  show() {
    this.#path = location.pathname;
  }

  /** Step, layer and head a link asks for; null where it asks for none. */
  wantedSelection() {
    const params = new URLSearchParams(location.search);
    const wanted = {};
    for (const name of LOOKED_AT) {
      if (/^\d{1,6}$/.test(params.get(name) ?? '')) wanted[name] = Number(params.get(name));
    }
    return Object.keys(wanted).length ? wanted : null;
  }

  /** The lesson that the address asks for; null: none. @returns {{id: string, scene: number} | null} scene from 1 */
  lesson() {
    const params = new URLSearchParams(location.search);
    const id = params.get('lesson');
    return id ? { id, scene: /^\d{1,3}$/.test(params.get('scene') ?? '') ? Number(params.get('scene')) : 1 } : null;
  }

  /** What the address says beside the run, from now on. @param {Object<string, string>} params */
  beside(params) {
    this.#beside = params;
    if (this.#shown) this.#show();
  }

  /** Remember the session and whether it steps alone, and let the URL say what is on screen, a moment later. */
  keep(session, sel, newest, solo) {
    if (!session) return;
    const { sid, recipe, url } = session;
    const params = new URLSearchParams(url ?? '');
    if (sel.step >= 0 && sel.step !== newest) params.set('step', sel.step);
    this.#shown = { sid, recipe, solo, url, run: params };
    this.#show();
  }

  #show() {
    const params = new URLSearchParams([...this.#shown.run, ...Object.entries(this.#beside)]);
    this.#shown.query = params.size ? `?${params}` : '';
    if (this.#ownsAddress) this.#timer ||= setTimeout(() => this.#sayAddress(), ADDRESS_AFTER_MS);
    this.#remember();
  }

  /** A lab's address is its own. */
  get #ownsAddress() {
    return typeof this.#shown?.url === 'string' && location.pathname === this.#path;
  }

  /** Not at every step: browsers ignore the changes of a page that makes many, and each takes milliseconds. */
  #sayAddress() {
    this.#timer = 0;
    if (!this.#ownsAddress || this.#shown.query === location.search) return;
    this.#former = location.search;
    history.replaceState(history.state, '', location.pathname + this.#shown.query);
    this.#remember();
  }

  /** With the address as it stands, and as it was: a reload asks for one of them, and must not look like somebody's link. */
  #remember() {
    const { sid, recipe, solo, query } = this.#shown;
    const addresses = this.#ownsAddress ? [location.search, this.#former] : [query];
    if (sid) this.#write(JSON.stringify({ sid, recipe, solo, addresses }));
  }

  #write(text) {
    this.#isAfresh = false;
    if (text === this.#kept) return;
    this.#kept = text;
    try {
      sessionStorage.setItem(MEMORY_KEY, text);
    } catch {
      // storage full or switched off: a reload then starts afresh
    }
  }

  /** From now on this tab is one's own, with this recipe: what it followed is forgotten. */
  own(recipe) {
    this.query = this.#former = '';
    this.#shown = null;
    this.#write(JSON.stringify(recipe ? { sid: LEFT_SID, recipe, solo: false, addresses: [''] } : {}));
    history.replaceState(history.state, '', location.pathname);
  }

  /** After a reset: neither a reload nor the link brings the run back. */
  forget() {
    clearTimeout(this.#timer);
    this.#timer = 0;
    this.#shown = null;
    this.#kept = this.query = '';
    history.replaceState(history.state, '', location.pathname);
    try {
      sessionStorage.removeItem(MEMORY_KEY);
    } catch {
      // nothing was kept
    }
  }
}
