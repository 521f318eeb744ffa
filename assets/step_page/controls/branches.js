/**
 * Branches: runs that share a beginning. Forking keeps the old run; this list goes back to it, and compares.
 *
 * For tests: .branch[data-branch][aria-current], .compare-with[data-branch]
 */

import { say } from '../drawing/say.js';
import { branchTree } from '../compare/branch_tree.js';
import { openCompare } from '../compare/compare_sheet.js';
import { make } from '../drawing/dom.js';

function branchButton(store, branch, done, fail) {
  const current = branch.id === store.session.branch;
  const parent = store.session.branches.find((other) => other.id === branch.parent);
  const from = parent
    ? branch.at === null || branch.at === undefined
      ? say('branches.from', { label: parent.label })
      : say('branches.from_step', { label: parent.label, step: branch.at })
    : say('branches.first');
  return make(
    'button.branch',
    {
      data: { branch: branch.id },
      'aria-current': current ? 'true' : null,
      disabled: current,
      onclick: () => store.send('switch', { branch: branch.id }).then(done, fail),
    },
    make('b', {}, branch.label),
    make('span', {}, say('branches.size', { steps: say('counted.step', { n: branch.steps }), tokens: say('counted.token', { n: branch.tokens }) })),
    make('small', {}, current ? say('branches.on_screen', { from }) : from),
  );
}

function compareButton(page, store, branch, done) {
  const compare = () => {
    done();
    openCompare(page, store, branch.id);
  };
  return make('button.small-button.compare-with', { data: { branch: branch.id }, title: say('compare.with_title'), onclick: compare }, say('compare.with'));
}

export function buildBranches(page, body, store, done) {
  const branches = store.session?.branches ?? [];
  const said = make('p.error-words', { role: 'alert' });
  const fail = (error) => (said.textContent = error.message);
  const choose = (id) => store.send('switch', { branch: id }).then(done, fail);
  const line = (branch) =>
    make('div.branch-line', {}, branchButton(store, branch, done, fail), branch.id === store.session.branch ? null : compareButton(page, store, branch, done));
  body.replaceChildren(
    branches.length < 2 ? '' : branchTree(store.session, choose),
    branches.length < 2 ? make('p.empty-words', {}, say('branches.only_one')) : '',
    make('div.branch-list', {}, ...branches.map(line)),
    said,
  );
}
