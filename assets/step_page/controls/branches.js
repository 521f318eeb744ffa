/**
 * Branches: runs that share a beginning. Forking keeps the old run; this list goes back to it.
 *
 * For tests: .branch[data-branch][aria-current]
 */

import { say } from '../drawing/say.js';
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

export function buildBranches(body, store, done) {
  const branches = store.session?.branches ?? [];
  const said = make('p.error-words', { role: 'alert' });
  const fail = (error) => (said.textContent = error.message);
  body.replaceChildren(
    branches.length < 2 ? make('p.empty-words', {}, say('branches.only_one')) : '',
    make('div.branch-list', {}, ...branches.map((branch) => branchButton(store, branch, done, fail))),
    said,
  );
}
