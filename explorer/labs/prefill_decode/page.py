"""Lab: one sweep over the prompt against one turn per new token, measured here and computed for elsewhere."""

from __future__ import annotations

from explorer.hosting.runtime import runtime
from explorer.labs import live
from explorer.labs.prefill_decode import anywhere, here, in_pieces, measured
from explorer.labs.shell import lab


def page() -> None:
    """Two requests measured, one prompt in pieces, and the same by formula."""
    lab(
        "Prefill and decode",
        "As many tokens go through the model either way: why is a long prompt with a short answer not a short prompt "
        "with a long answer?",
    )
    engine, hosting = live.engine(), runtime().hosting
    if engine is None:
        return
    here.this_machine(engine, hosting)
    measured.show(engine, hosting)
    in_pieces.show(engine, hosting)
    anywhere.show(engine)
