/**
 * The page fills the view: it reaches over the empty edges that Streamlit leaves at the sides and at the end.
 *
 * Measured, not assumed: the nearest scrolling element is found by what it does, not by its name.
 */

const EDGE_WIDE = 20;
const EDGE_NARROW = 10;
const EDGE_FOCUS = 6; // a focus ring stands out of its element

function parentAcross(node) {
  return node.parentElement ?? node.getRootNode().host ?? null;
}

function scrollerOf(node) {
  for (let up = parentAcross(node); up; up = parentAcross(up)) {
    if (/auto|scroll/.test(getComputedStyle(up).overflowY)) return up;
  }
  return document.scrollingElement;
}

/** Room left between the page, its own margins taken away, and the edges of what scrolls. */
function measureEdges(root, scroller) {
  const page = root.getBoundingClientRect();
  const view = scroller.getBoundingClientRect();
  const margin = getComputedStyle(root);
  const left = page.left - parseFloat(margin.marginLeft) - view.left;
  const right = view.left + scroller.clientWidth - (page.right + parseFloat(margin.marginRight));
  const ends = page.bottom - view.top + scroller.scrollTop;
  return {
    left,
    right,
    below: scroller.scrollHeight - ends,
    above: page.top - view.top + scroller.scrollTop,
    height: scroller.clientHeight,
  };
}

/** @param {HTMLElement} root the page @param {HTMLElement} [bar] what sticks to its end @returns {() => void} stop fitting */
export function fitToView(root, bar) {
  const scroller = scrollerOf(root);
  const before = scroller.style.scrollPadding;
  const fit = () => {
    if ('presents' in root.dataset) return; // it covers the view, wherever it stands
    const { left, right, below, above, height } = measureEdges(root, scroller);
    const edge = scroller.clientWidth < 700 ? EDGE_NARROW : EDGE_WIDE;
    root.style.marginLeft = `${Math.min(0, edge - left)}px`;
    root.style.marginRight = `${Math.min(0, edge - right)}px`;
    if (below > 1)
      root.style.marginBottom = `${Math.min(0, parseFloat(getComputedStyle(root).marginBottom) - below)}px`;
    root.style.setProperty('--edge', `${edge}px`);
    root.style.setProperty('--view', `${height}px`);
    root.style.setProperty('--above', `${Math.max(0, above)}px`);
    if (bar) root.style.setProperty('--bar', `${bar.offsetHeight}px`);
    // What takes the focus is scrolled clear of the menu above and of the bar that sticks to the end.
    scroller.style.scrollPadding = `${Math.max(0, above) + EDGE_FOCUS}px 0 ${(bar?.offsetHeight ?? 0) + EDGE_FOCUS}px`;
  };
  const observer = new ResizeObserver(fit);
  observer.observe(scroller);
  if (bar) observer.observe(bar);
  fit();
  return () => {
    observer.disconnect();
    scroller.style.scrollPadding = before;
  };
}
