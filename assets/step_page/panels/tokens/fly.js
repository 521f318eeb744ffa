/** The chosen token's way from its bar to its place in the strip: the one motion that shows what a step did. */

import { make } from '../../drawing/dom.js';

const FLIGHT_MS = 230;

/** @param {HTMLElement} root @param {Element|null} from @param {Element|null} to @param {number} [ms] */
export function flyToken(root, from, to, ms = FLIGHT_MS) {
  if (!from || !to || matchMedia('(prefers-reduced-motion: reduce)').matches) return;
  const base = root.getBoundingClientRect();
  const start = from.getBoundingClientRect();
  const end = to.getBoundingClientRect();
  const inView = ({ top, width }) => width > 0 && top > 0 && top < innerHeight;
  if (!inView(start) || !inView(end)) return;
  const ghost = make('span.flying', { 'aria-hidden': 'true' });
  ghost.append(...Array.from(to.childNodes, (node) => node.cloneNode(true)));
  root.append(ghost);
  const at = (box, x) => `translate(${x - base.left}px, ${box.top - base.top}px)`;
  const flight = ghost.animate(
    [
      { transform: at(start, start.right - ghost.offsetWidth), opacity: 0.35 },
      { transform: at(end, end.left), opacity: 1 },
    ],
    { duration: ms, easing: 'cubic-bezier(.3, .7, .2, 1)' },
  );
  flight.finished.then(
    () => ghost.remove(),
    () => ghost.remove(),
  );
}
