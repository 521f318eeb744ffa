"""The step that a page shows until its own model is there: one frame of the live line, recorded with the bundled model.

It is what a new tab is given for the first example, to the byte, so the page reads it with the scripts that read every
frame. Where a frame has changed, record it anew: `python -m explorer.recordings.first_step`.
"""

from __future__ import annotations

import asyncio
from pathlib import Path

from engine.config import EngineConfig
from explorer.engines.pool import EnginePool
from explorer.live.page_frame import PageFrames
from explorer.live.tab import MountLog, Tab
from explorer.workspace.examples import EXAMPLES
from explorer.workspace.workspace import Workspace

FILE = Path(__file__).resolve().parents[2] / "assets" / "step_page" / "recorded" / "first_step.frame"
NAME = "recorded"  # of the session in it: no tab has it


async def first_step(pool: EnginePool) -> bytes:
    """The frame with the prefill of the first example, at the settings a tab begins with."""
    loading = pool.request()
    await asyncio.wrap_future(loading.future)
    tab = Tab(Workspace(pool, loading, sid=NAME))
    example = EXAMPLES[0]
    for _ in range(2):  # the first forward pass after a start takes longer than any later one
        outcome = await tab.perform("prefill", {"prompt": example.prompt, "mode": example.mode})
        assert outcome.error is None, outcome.error
    tab.workspace.dropped = None
    frame = await PageFrames(tab, MountLog(), None).build(1, {})
    assert frame is not None, "a run is something new"
    tab.close()
    return frame


def main() -> None:
    """Record, into the file that the page is given."""
    pool = EnginePool(EngineConfig(device="cpu", dtype="float32", prefix_bytes=0))
    try:
        frame = asyncio.run(first_step(pool))
    finally:
        pool.close()
    FILE.write_bytes(frame)


if __name__ == "__main__":
    main()
