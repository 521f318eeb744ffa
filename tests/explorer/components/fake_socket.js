// A WebSocket in the hands of a test: what the page says is kept, and the test says what comes down.
(() => {
  const sockets = [];
  class FakeSocket {
    static CONNECTING = 0;
    static OPEN = 1;
    readyState = 0;
    said = [];
    constructor(url) {
      this.url = url;
      this.madeAt = Date.now();
      sockets.push(this);
    }
    send(text) {
      this.said.push(JSON.parse(text));
    }
    close() {
      this.readyState = 3;
    }
  }
  globalThis.WebSocket = FakeSocket;
  globalThis.sockets = sockets;
  globalThis.accept = () => {
    sockets.at(-1).readyState = 1;
    sockets.at(-1).onopen?.();
  };
  globalThis.take = (text) => {
    const bytes = Uint8Array.from(atob(text), (c) => c.charCodeAt(0));
    sockets.at(-1).onmessage?.({ data: bytes.buffer });
  };
  globalThis.cut = (code, reason = '') => {
    sockets.at(-1).readyState = 3;
    sockets.at(-1).onclose?.({ code, reason });
  };
})();
