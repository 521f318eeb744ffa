"""What one attention head worked with at one step of a session: its query, keys and values, as plain arrays."""

from __future__ import annotations

from concurrent.futures import Future

from engine.decode import inspection
from engine.decode.session_state import SessionState
from engine.session import DecodeSession
from engine.tiles import HeadInputs


def read_head(session: DecodeSession, step: int, layer: int, head: int) -> Future[HeadInputs]:
    """The numbers of `head` in `layer` at `step`, read on the engine thread. Moves nothing."""

    def read(state: SessionState) -> HeadInputs:
        return inspection.head_inputs(session.engine.stepper.runner, state, step, layer, head)

    return session.look(read)
