"""Where no WebSocket can be opened, the page says so instead of staying empty."""

from __future__ import annotations

from playwright.sync_api import Browser, expect

# A network that lets requests pass and no WebSocket: every one is sent to a port where nobody listens.
NO_WEBSOCKETS = """
window.WebSocket = class extends WebSocket {
  constructor(address, protocols) { super('ws://127.0.0.1:9/', protocols); }
};
"""


def test_a_network_that_blocks_websockets_is_named_with_what_must_be_let_through(browser: Browser, app_url: str):
    context = browser.new_context()
    page = context.new_page()
    page.add_init_script(NO_WEBSOCKETS)
    page.goto(app_url)
    note = page.locator(".loupe-blocked")
    expect(note).to_contain_text("no WebSocket to the server can be opened", timeout=60_000)
    expect(note).to_contain_text("/_stcore/stream and /live-line")
    context.close()
