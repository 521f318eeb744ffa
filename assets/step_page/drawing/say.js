/**
 * The page's sentences by name, from words.toml: one place to read them all, and to translate them.
 *
 * WORDS is written in front of the scripts when they are bundled (explorer/components/step_page.py).
 */

const PLACE = /\{(\w+)\}/g;

/**
 * say('panel.what_is', {name: 'a token'}): the sentence with its places filled. A name that is not there, or a place without
 * a value, is a mistake of ours and throws.
 * @param {string} name section.name @param {Object<string, string|number>} values
 */
export function say(name, values = {}) {
  const sentence = WORDS[name];
  if (sentence === undefined) throw new Error(`words.toml has no ${name}`);
  return sentence.replace(PLACE, (_, place) => {
    if (values[place] === undefined) throw new Error(`${name} needs a value for {${place}}`);
    return String(values[place]);
  });
}
