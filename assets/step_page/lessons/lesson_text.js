/**
 * A lesson's text as nodes. It comes as spans (explorer/lessons/payload.py) and goes in as text: nothing of it is markup.
 * A value stands in a node of its own and is filled again whenever the page is drawn.
 */

import { make, setText } from '../drawing/dom.js';
import { say } from '../drawing/say.js';
import { fieldOf } from './fields.js';

/** @param {Array<object>} spans @returns {Array<Node|string>} */
export function spanNodes(spans) {
  return spans.map((span) => {
    if (span.value) return make('b.lesson-value', { data: { value: span.value } }, '…');
    if (span.strong) return make('strong', {}, span.strong);
    if (span.code) return make('code', {}, span.code);
    if (span.term) return make('dfn', { data: { term: span.term }, tabIndex: 0 }, span.text);
    if (span.href) return make('a', { href: span.href, target: '_blank', rel: 'noopener noreferrer' }, span.text);
    return span.text;
  });
}

/** Fill every value below `root`. @param {object} scene as fieldOf takes it */
export function fillValues(root, scene) {
  for (const node of root.querySelectorAll('[data-value]')) {
    const field = fieldOf(node.dataset.value, scene);
    setText(node, field?.text ?? '…');
    node.title = field ? '' : say('lesson.no_value', { name: node.dataset.value });
  }
}
