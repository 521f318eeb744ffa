"""Numbers checked: every number that this session's records show, computed a second time, live.

The oracle shares the weights and nothing else: one forward pass of stock transformers with eager attention, and
stages, draws, norms, bytes and stop rules worked out again by code of its own (engine/studies/self_check/). What
differs by more than two healthy forward passes may differ fails, and nothing is skipped to look good.
"""

from __future__ import annotations

from collections.abc import Generator
from concurrent.futures import Future

from engine.decode.session_state import SessionState
from engine.records import Check
from engine.session import DecodeSession
from engine.studies.self_check.study import study


def check_numbers(session: DecodeSession) -> Future[tuple[Check, ...]]:
    """Check every record of `session`, in pieces that let others in between. Moves nothing.

    Its progress is the session's; `session.cancel()` ends it. Raises PromptTooLong for a very long session.
    """
    engine, report = session.engine, session._progress("check")
    config = engine.config

    def work(state: SessionState) -> Generator[None, None, tuple[Check, ...]]:
        checked = study(engine.stepper, engine.stock, state, most_sessions=config.max_batch, chunk=config.prefill_chunk)
        with engine.stepper.runner.scratch.holding(state.store.live_bytes):  # transformers' own cache, as large as ours
            return (yield from checked.run(report))

    return session.run(work)
