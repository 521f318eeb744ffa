/**
 * Brings the page's scripts and styles, once. They are too long to come along with every frame, so this element has
 * them and never changes; the element that gets the frames (page.js) picks them up by their version.
 *
 * VERSION and STYLES are written in front of this file when it is bundled.
 */

import { stepPage } from '../step_page.js';

const styles = new CSSStyleSheet();
styles.replaceSync(STYLES);
(globalThis.loupeCode ??= new Map()).set(VERSION, { page: stepPage, styles });
globalThis.dispatchEvent(new Event('loupe-code'));

export default function code() {}
