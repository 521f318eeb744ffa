/**
 * The page's sentences by name, from words.toml: one place to read them all, and to translate them.
 *
 * WORDS and LANGUAGE are written in front of the scripts when they are bundled (explorer/components/page_words.py).
 */

import { formatCount } from './format.js';

const PLACE = /\{(\w+)\}/g;
const NODE = '\u0000'; // stands around the place of a node while a sentence is filled
const PLURALS = new Intl.PluralRules(LANGUAGE);

/**
 * say('panel.what_is', {name: 'a token'}): the sentence with its places filled. A name that is not there, or a place without
 * a value, is a mistake of ours and throws. A sentence about a count is a table of forms, by the categories of the language
 * (`one`, `few`, `other`): there `n` is the count itself.
 * @param {string} name section.name @param {Object<string, string|number>} values
 */
export function say(name, values = {}) {
  const words = WORDS[name];
  if (words === undefined) throw new Error(`words.toml has no ${name}`);
  return typeof words === 'string' ? filled(name, words, values) : filled(name, formOf(name, words, values.n), { ...values, n: formatCount(values.n) });
}

/**
 * The same for append(): a place whose value is a node stays that node, wherever the sentence has it.
 * @param {Object<string, string|number|Node>} values @returns {(string|Node)[]}
 */
export function sayNodes(name, values) {
  const marked = Object.entries(values).map(([place, value]) => [place, value instanceof Node ? `${NODE}${place}${NODE}` : value]);
  const parts = say(name, Object.fromEntries(marked)).split(NODE); // text and names of places in turn
  return parts.map((part, i) => (i % 2 ? values[part] : part)).filter((part) => part !== '');
}

function filled(name, sentence, values) {
  return sentence.replace(PLACE, (_, place) => {
    if (values[place] === undefined) throw new Error(`${name} needs a value for {${place}}`);
    return String(values[place]);
  });
}

function formOf(name, forms, n) {
  if (typeof n !== 'number') throw new Error(`${name} has a form for each count: n must be a number, got ${n}`);
  return forms[PLURALS.select(n)];
}
