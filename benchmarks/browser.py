"""What a person waits for in the browser: a click on Step, and looking around.

A click counts until the page says that the new step is drawn in every panel; the model's time, forward and sampling, is
taken off. Looking is measured as work: what the selection
and the frames after it keep the page's main thread busy with, not the wait for the next frame.
"""

from __future__ import annotations

import statistics
from collections.abc import Sequence
from typing import Any

from playwright.sync_api import Page, sync_playwright

from benchmarks.app import running_app
from benchmarks.results import Row
from tools.browser import require_browser

FLAGS = ("--no-sandbox", "--disable-gpu", "--disable-background-networking", "--no-first-run")
PATIENCE_MS = 120_000
CLICKS, LOOKS = 40, 60
PROMPT = "The cat sat"

CLICK = """
async (root, count) => {
  const store = window.__loupe;
  const drawnWith = (steps) => new Promise((done) => {
    const watch = new MutationObserver(() => {
      if (Number(root.dataset.steps) < steps) return;  // set anew at every drawing, mostly to what it was
      watch.disconnect();
      done();
    });
    watch.observe(root, { attributes: true, attributeFilter: ['data-steps'] });
  });
  const seen = [];
  for (let i = 0; i < count; i += 1) {
    const drawn = drawnWith(Number(root.dataset.steps) + 1);
    const started = performance.now();
    root.querySelector('.transport [data-act=step]').click();
    await drawn;
    const elapsed = performance.now() - started;
    const timing = store.steps[store.newest].timing_ms;
    seen.push([elapsed, timing.forward + timing.sample]);
    await new Promise((done) => setTimeout(done, 120));
  }
  return seen;
}
"""

LOOK = """
async (root, [kind, count]) => {
  const store = window.__loupe;
  const ask = window.requestAnimationFrame.bind(window);
  let busy = 0;
  const timed = (work) => (...args) => {
    const started = performance.now();
    work(...args);
    busy += performance.now() - started;
  };
  window.requestAnimationFrame = (work) => ask(timed(work));
  const input = root.querySelector('.lp-slider input');
  const acts = {
    scrub: (i) => store.select({ step: i % store.steps.length }),
    head: (i) => store.select({ layer: i % store.model.num_layers, head: i % store.model.num_heads }),
    slider: (i) => { input.value = (20 + i) % 200; input.dispatchEvent(new Event('input', { bubbles: true })); },
  };
  const seen = [];
  for (let i = 0; i < count; i += 1) {
    busy = 0;
    timed(acts[kind])(i);
    for (let n = 0; n < 3; n += 1) await new Promise((done) => ask(done));
    seen.push(busy);
  }
  window.requestAnimationFrame = ask;
  return seen;
}
"""


def browser_rows() -> list[Row]:
    """Rows measured in headless Chromium against the real app."""
    with running_app() as url, sync_playwright() as playwright:
        chromium = playwright.chromium.launch(executable_path=require_browser(), args=list(FLAGS))
        page = chromium.new_page(viewport={"width": 1280, "height": 720})
        page.set_default_timeout(PATIENCE_MS)
        sent: list[object] = []
        page.on("websocket", lambda socket: socket.on("framesent", lambda frame: sent.append(frame)))
        page.goto(url)
        _prefill(page)
        rows = _click_rows(page.locator(".loupe").evaluate(CLICK, CLICKS))
        page.wait_for_timeout(1000)
        page.locator(".sampling-button").click()
        rows += [_look_row(page, kind, sent) for kind in ("scrub", "head", "slider")]
        chromium.close()
    return rows


def _prefill(page: Page) -> None:
    page.locator(".loupe[data-recorded='false'][data-steps='1']").wait_for()  # the page's own beginning
    before = page.locator(".loupe").get_attribute("data-epoch")
    page.locator(".prompt-box").fill(PROMPT)
    page.locator("button.prefill").click()
    page.locator(f".loupe[data-steps='1']:not([data-epoch='{before}'])").wait_for()


def _click_rows(seen: Sequence[Sequence[float]]) -> list[Row]:
    beside = sorted(elapsed - model for elapsed, model in seen)
    parts = {
        "click_to_drawn_median_ms": statistics.median(elapsed for elapsed, _ in seen),
        "model_median_ms": statistics.median(model for _, model in seen),
    }
    late = beside[min(len(beside) - 1, round(0.95 * len(beside)))]
    return [
        Row(
            "click on Step to drawn, less the model's time", statistics.median(beside), "ms", "at most", 10, parts=parts
        ),
        Row("  the same, 95th percentile", late, "ms", "at most", 25),
    ]


def _look_row(page: Page, kind: str, sent: list[object]) -> Row:
    before = len(sent)
    seen: list[float] = page.locator(".loupe").evaluate(LOOK, [kind, LOOKS])
    requests: dict[str, Any] = {"requests": len(sent) - before, "worst_ms": max(seen)}
    what = {"scrub": "looking at another step", "head": "looking at another head", "slider": "dragging a slider"}[kind]
    return Row(f"{what}, redraw", statistics.median(seen), "ms", "at most", 16, parts=requests)
