/**
 * How one token looks. A token is bytes: spaces, newlines, controls and halves of a character all get a visible form.
 *
 * A token that is not whole characters has no text of its own. It is named by
 * the bytes it holds ("byte 1–2 of 🦊"), never drawn as a replacement box.
 */

import { say } from './say.js';
import { keepFromTranslators } from './dom.js';

/** The legend: sign and meaning of every visible form. */
export const TOKEN_SIGNS = [
  { text: '·', kind: 'space', meaning: say('pieces.space') },
  { text: '⏎', kind: 'newline', meaning: say('pieces.newline') },
  { text: '⇥', kind: 'tab', meaning: say('pieces.tab') },
  { text: '␀', kind: 'control', meaning: say('pieces.control') },
  { text: '⟨f0 9f⟩', kind: 'bytes', meaning: say('pieces.bytes') },
];

const CONTROL_NAMES = {
  0x0d: '␍',
  0x7f: '␡',
  0xa0: 'NBSP',
  0xad: 'SHY',
  0x200b: 'ZWSP',
  0x200c: 'ZWNJ',
  0x200d: 'ZWJ',
  0x200e: 'LRM',
  0x200f: 'RLM',
  0x2028: 'LS',
  0x2029: 'PS',
  0x2060: 'WJ',
  0xfe0e: 'VS15',
  0xfe0f: 'VS16',
  0xfeff: 'BOM',
};
const INVISIBLE =
  /[\u0000-\u001f\u007f-\u00a0\u00ad\u1680\u180e\u2000-\u200f\u2028-\u202f\u205f-\u2064\u2066-\u206f\u3000\ufe00-\ufe0f\ufeff]/u;
const JOINERS = /[\u200c\u200d\ufe0e\ufe0f]/u;
const COMBINING = /^\p{M}/u;

function controlName(code) {
  if (CONTROL_NAMES[code]) return CONTROL_NAMES[code];
  if (code < 0x20) return String.fromCodePoint(0x2400 + code); // ␀ ␁ ...
  return `U+${code.toString(16).toUpperCase().padStart(4, '0')}`;
}

function charKind(char) {
  if (char === ' ') return { text: '·', kind: 'space' };
  if (char === '\n') return { text: '⏎', kind: 'newline' };
  if (char === '\t') return { text: '⇥', kind: 'tab' };
  if (INVISIBLE.test(char)) return { text: controlName(char.codePointAt(0)), kind: 'control' };
  return { text: char, kind: 'text' };
}

/** Joiners and variation selectors stay part of the text they join; alone they are shown by name. */
function textSpans(text) {
  const spans = [];
  for (const char of text) {
    const last = spans.at(-1);
    const joins = JOINERS.test(char) && last?.kind === 'text';
    const span = joins ? { text: char, kind: 'text' } : charKind(char);
    if (last?.kind === 'text' && span.kind === 'text') last.text += span.text;
    else spans.push(span);
  }
  const first = spans[0];
  if (first?.kind === 'text' && COMBINING.test(first.text)) first.text = `◌${first.text}`;
  return spans;
}

function partLabel(part) {
  const { first, last, char, of } = part;
  return first === last ? say('pieces.byte', { first, of: char || of }) : say('pieces.byte_range', { first, last, of: char || of });
}

/** Tokens without bytes tell themselves apart by their ids: models have more ids than their tokenizers have tokens. */
function emptyName({ id, known }) {
  return known === false ? say('pieces.no_token', { id }) : id === undefined || id === null ? say('pieces.empty') : say('pieces.empty_id', { id });
}

/** "f09f" -> "⟨f0 9f⟩" */
export function hexSign(hex) {
  return `⟨${(hex.match(/../g) ?? []).join(' ')}⟩`;
}

/**
 * @param {{text: string|null, hex?: string, special?: boolean, parts?: object[], id?: number, known?: boolean}} piece
 * @returns {{text: string, kind: 'text'|'space'|'newline'|'tab'|'control'|'bytes'|'special'|'empty'}[]}
 */
export function visibleToken(piece) {
  if (!piece) return [{ text: '?', kind: 'empty' }];
  if (piece.special) return [{ text: piece.text ?? hexSign(piece.hex ?? ''), kind: 'special' }];
  if (piece.text === '') return [{ text: emptyName(piece), kind: 'empty' }];
  if (piece.text !== null && piece.text !== undefined) return textSpans(piece.text);
  if (piece.parts?.length) return [{ text: piece.parts.map(partLabel).join(' + '), kind: 'bytes' }];
  return [{ text: hexSign(piece.hex ?? ''), kind: 'bytes' }];
}

/** The same as one string, for canvas labels and tables. */
export function plainToken(piece) {
  return visibleToken(piece)
    .map((span) => span.text)
    .join('');
}

/** What the token says, in quotes, for sentences and screen readers; what cannot be seen is shown by its sign. */
export function quotedToken(piece) {
  if (!piece) return say('pieces.unknown');
  if (piece.special) return say('pieces.special', { name: piece.text ?? piece.hex });
  if (piece.text === null || piece.text === undefined) return plainToken(piece);
  if (piece.text === '') return emptyName(piece);
  return `“${/[^\S ]|^ *$/.test(piece.text) || INVISIBLE.test(piece.text.trim()) ? plainToken(piece) : piece.text}”`;
}

/** Fill `node` with the token's spans. Bidirectional text is isolated; nothing becomes markup. */
export function renderToken(node, piece) {
  node.classList.add('token-text');
  keepFromTranslators(node);
  node.replaceChildren(
    ...visibleToken(piece).map(({ text, kind }) => {
      const span = document.createElement('bdi');
      span.className = `sign-${kind}`;
      span.textContent = text;
      return span;
    }),
  );
  return node;
}
