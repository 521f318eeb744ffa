/** What a picture of the Step page is of: model, the prompt's beginning, the step, and the layer and head where they matter. */

import { say } from '../drawing/say.js';
import { HEAD_MEAN } from '../store/attention_data.js';

const PROMPT_START = 48; // characters of the prompt

/** The prompt's first words. A character may lie in several tokens: their bytes are read together. */
export function promptStart(store) {
  const tokens = store.tokens.slice(0, Math.min(store.promptLength, PROMPT_START * 4)); // a character has four bytes at most
  const bytes = tokens.flatMap((token) => [...tokenBytes(token)]);
  const text = [...new TextDecoder().decode(Uint8Array.from(bytes)).replace(/[\p{Cc}\p{Zl}\p{Zp}]+/gu, ' ').trim()];
  return text.length > PROMPT_START ? `${text.slice(0, PROMPT_START).join('').trim()}…` : text.join('');
}

function tokenBytes({ text, hex }) {
  if (text !== null && text !== undefined) return new TextEncoder().encode(text);
  return (hex ?? '').match(/../g)?.map((pair) => parseInt(pair, 16)) ?? [];
}

/** @param {() => {layer: number, head: number}} shown in the attention panel */
export function stepSource(store, shown) {
  return (name) => {
    const { selected: step, model } = store;
    const { layer, head } = name === 'attention' && step ? shown() : store.sel;
    const place = step ? shownPlace(name, layer, head) : '';
    const words = [
      model?.name, store.tokens.length ? say('picture.prompt', { start: promptStart(store) }) : '', step ? say('picture.step', { step: step.index }) : '',
      place, store.recording ? say('picture.recorded') : '', say('picture.loupe'),
    ];
    return { words: words.filter(Boolean).join(' · '), suffix: step ? `step-${step.index}` : '' };
  };
}

function shownPlace(name, layer, head) {
  if (name === 'attention') return head === HEAD_MEAN ? say('picture.layer_mean', { layer }) : say('picture.layer_head', { layer, head });
  return name === 'kv' || name === 'block' ? say('picture.layer', { layer }) : '';
}
