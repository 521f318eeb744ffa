"""Loupe in a script or a notebook: decode a prompt and look at every step.

    import loupe

    run = loupe.record("The cat sat", steps=12)
    run                           # in a notebook: the Step page, playing this run
    run.steps[3].attention        # (layers, heads, keys)
    run.save("cat.loupe")         # opened again by loupe.open, or on the Step page

Neither needs Streamlit. `open` needs no model either.
"""

from __future__ import annotations

from explorer.recordings.refusals import BadRecording
from loupe.recording import open, record  # noqa: A004  (loupe.open, as one opens a file)
from loupe.run import Run, Step

__all__ = ["BadRecording", "Run", "Step", "open", "record"]
