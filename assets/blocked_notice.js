/*
 * Nothing of the page has been drawn after a while: is it because no WebSocket can be opened? For tests: .loupe-blocked
 */
(() => {
  const WAIT_MS = 6000;
  const base = new URL('./', document.querySelector('script[src*="static/js/"]').src.replace(/static\/js\/.*/, ''));
  const isDrawn = () => document.querySelector('.stApp') && !document.querySelector('[data-testid="stAppSkeleton"]');

  const say = () => {
    const note = document.createElement('p');
    note.className = 'loupe-blocked';
    note.setAttribute('role', 'alert');
    note.style.cssText =
      'position:fixed;inset:30vh auto auto 50%;transform:translateX(-50%);z-index:9;max-width:34rem;margin:0;padding:1.2em;' +
      'font:17px/1.5 system-ui,sans-serif;color:#18202b;background:#fff;border:1px solid #c8443e;border-radius:10px';
    note.textContent =
      'Loupe cannot be shown: this page came, but no WebSocket to the server can be opened. A proxy, a firewall or a browser ' +
      'extension in between may block it. Whoever runs the proxy must let the Upgrade and Connection headers through ' +
      `(for ${base.host}${base.pathname}_stcore/stream and ${base.pathname}live-line). Then reload this page.`;
    document.body.append(note);
  };

  const probe = () => {
    if (isDrawn()) return;
    const line = new WebSocket(`${base.href.replace(/^http/, 'ws')}live-line`);
    line.onopen = () => line.close();
    line.onerror = () => isDrawn() || say();
  };
  setTimeout(probe, WAIT_MS);
})();
