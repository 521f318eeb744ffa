/**
 * The branches as a picture: one lane a run, from the step at which it left another to its newest. A lane that is pressed
 * comes on screen. The list beside it says the same in words.
 *
 * For tests: .branch-tree [data-branch]
 */

import { say } from '../drawing/say.js';

const LANE = 26;
const STEP = 22;
const LEFT = 14;
const DOT = 4;
const NAME = 80; // pixels for the name at a lane's end
const WIDEST = 30; // steps that get their whole width; more are closer together

function svgNode(name, attributes, ...children) {
  const node = document.createElementNS('http://www.w3.org/2000/svg', name);
  for (const [key, value] of Object.entries(attributes)) node.setAttribute(key, value);
  node.append(...children);
  return node;
}

/** @param {(branch: number) => void} onChoose */
export function branchTree(session, onChoose) {
  const { branches, branch: current } = session;
  const lane = new Map(branches.map((one, i) => [one.id, i]));
  const most = Math.max(...branches.map(({ steps }) => steps), 2);
  const each = STEP * Math.min(1, WIDEST / most);
  const x = (step) => LEFT + step * each;
  const y = (id) => LANE / 2 + lane.get(id) * LANE;
  const lanes = branches.map((one) => laneOf(one, { x, y, isCurrent: one.id === current, parent: branches.find(({ id }) => id === one.parent), onChoose }));
  const size = { width: x(most - 1) + LEFT + NAME, height: LANE * branches.length };
  return svgNode('svg', { class: 'branch-tree', viewBox: `0 0 ${size.width} ${size.height}`, width: size.width, height: size.height, role: 'group', 'aria-label': say('branches.tree') }, ...lanes);
}

/** One run. Where its parent was rewound behind the place at which it left, it leaves the parent's newest step. */
function laneOf(one, { x, y, isCurrent, parent, onChoose }) {
  const at = parent ? Math.min(one.at ?? 0, parent.steps - 1) : 0;
  const last = Math.max(one.steps - 1, at);
  const from = parent ? `M${x(at)} ${y(parent.id)}C${x(at) + 8} ${y(one.id)} ${x(at) + 2} ${y(one.id)} ${x(at) + 10} ${y(one.id)}` : `M${x(0)} ${y(one.id)}`;
  const path = svgNode('path', { d: `${from}H${Math.max(x(last), x(at) + 10)}` });
  const dots = Array.from({ length: last - at + (parent ? 0 : 1) }, (_, i) => svgNode('circle', { cx: x(at + i + (parent ? 1 : 0)), cy: y(one.id), r: DOT }));
  const label = say('branches.lane', { label: one.label, n: one.steps });
  const area = svgNode('rect', { x: 0, y: y(one.id) - LANE / 2, width: '100%', height: LANE, class: 'branch-area' });
  const name = svgNode('text', { x: Math.max(x(last), x(at) + 10) + 12, y: y(one.id) + 4 }, one.label);
  const node = svgNode('g', { 'data-branch': one.id, class: isCurrent ? 'is-current' : '', role: 'button', tabindex: isCurrent ? -1 : 0, 'aria-label': label, 'aria-disabled': isCurrent }, svgNode('title', {}, label), area, path, ...dots, name);
  const choose = () => isCurrent || onChoose(one.id);
  node.addEventListener('click', choose);
  node.addEventListener('keydown', (event) => {
    if (event.key !== 'Enter' && event.key !== ' ') return;
    event.preventDefault();
    event.stopPropagation();
    choose();
  });
  return node;
}
