/**
 * The element that gets the frames. Its scripts and styles come in another one (code.js), which may be there later
 * than the first frame: until then the newest frame waits.
 *
 * VERSION is written in front of this file. A server that was restarted with other scripts has another one, so
 * frames never meet scripts of another age.
 */

const shown = new WeakMap(); // parent element -> how it is updated

class Mount {
  constructor() {
    this.onCode = () => this.#draw();
    globalThis.addEventListener('loupe-code', this.onCode);
    this.dispose = () => this.#dispose();
  }

  update(frame) {
    this.frame = frame;
    this.#draw();
  }

  #draw() {
    const code = globalThis.loupeCode?.get(VERSION);
    if (!code) return;
    globalThis.removeEventListener('loupe-code', this.onCode);
    const root = this.frame.parentElement.getRootNode();
    if (!root.adoptedStyleSheets.includes(code.styles)) root.adoptedStyleSheets.push(code.styles);
    this.disposePage = code.page(this.frame);
  }

  #dispose() {
    globalThis.removeEventListener('loupe-code', this.onCode);
    shown.delete(this.frame.parentElement);
    this.disposePage?.();
  }
}

export default function page(frame) {
  let mount = shown.get(frame.parentElement);
  if (!mount) {
    mount = new Mount();
    shown.set(frame.parentElement, mount);
  }
  mount.update(frame);
  return mount.dispose;
}
