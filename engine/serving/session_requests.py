"""How what a session is asked for reaches the engine thread, and how what came of it is shown to readers.

A session's own calls (session.py) say what to do; here they are queued, preceded by a rebuild where the cache
was released, and followed by a new snapshot. Whether a cache is there is decided on
the engine thread, in order with everything else. A caller could only guess.
"""

from __future__ import annotations

import secrets
from collections.abc import Callable
from concurrent.futures import Future
from typing import Any

from engine.decode import prefilling
from engine.decode.session_state import SessionState, Snapshot
from engine.errors import SessionError
from engine.progress import OnProgress
from engine.serving.engine_thread import EngineThread
from engine.serving.requests import Pieces, always, at_once, never


class SessionRequests:
    """The queue's side of one session.

    id        unguessable
    engine    the engine whose thread does the work
    owner     whose share of the engine its heavy work takes: a tab's, over all its sessions; else the session's own
    progress  (what, done, total) of long work under way; None while there is none
    """

    def __init__(self, engine: EngineThread, state: SessionState, owner: str | None = None) -> None:
        self.id = secrets.token_urlsafe(16)
        self.engine = engine
        self.owner = owner or self.id
        self.progress: tuple[str, int, int] | None = None
        self._state = state
        self._is_closed = False
        self._cancels = 0  # how often somebody gave up on what was asked for until then
        engine.sessions.admit(self.id, state)  # raises where there is no place
        self._snapshot = Snapshot(state.recipe(), (), (), 0)
        self._publish()

    def cancel(self) -> None:
        """Give up long work asked for until now (a prefill, a rebuild); the session stays as it was."""
        self._cancels += 1

    def _soon(self, call: Callable[[], Any], *, cut: bool = False) -> Future[Any]:
        """Submit a short call that needs the cache: a released one is prefilled again first."""
        return self._restored(at_once(call), cut=cut, is_brief=lambda: not self._state.is_released)

    def _at_once(self, call: Callable[[], Any], *, cut: bool = False) -> Future[Any]:
        """Submit a short call that needs no cache."""
        return self._submit(at_once(call), cut=cut, is_brief=always)

    def _look(self, work: Callable[[], Pieces]) -> Future[Any]:
        """Submit long work that moves nothing: one such piece of work runs at a time. Raises EngineBusy."""
        return self._restored(work, is_look=True)

    def _restored(
        self,
        work: Callable[[], Pieces],
        *,
        cut: bool = False,
        is_brief: Callable[[], bool] = never,
        is_look: bool = False,
    ) -> Future[Any]:
        """Submit work that needs the cache: a released one is prefilled again first."""
        progress = self._progress("rebuild")
        return self._submit(work, before=lambda: self._restore(progress), cut=cut, is_brief=is_brief, is_look=is_look)

    def _restore(self, progress: OnProgress) -> Pieces:
        if self._state.is_released:
            chunk = self.engine.config.prefill_chunk
            yield from prefilling.restore_cache(self.engine.stepper, self._state, chunk=chunk, progress=progress)

    def _require_open(self) -> None:
        if self._is_closed:
            raise SessionError("This session was closed. Begin a new one, from its recipe if you like.")

    def _submit(
        self,
        work: Callable[[], Pieces],
        *,
        before: Callable[[], Pieces] | None = None,
        cut: bool = False,
        is_brief: Callable[[], bool] = never,
        is_look: bool = False,
    ) -> Future[Any]:
        """Submit work whose effect is all or nothing, published included. What comes `before` it stays."""
        self._require_open()

        def published() -> Pieces:
            try:
                if before is not None:
                    yield from before()
                with self._state.undone_if_it_fails():
                    result = yield from work()
                    self._publish(cut=cut)
            finally:
                self.progress = None
            return result

        return self.engine.submit(self.id, published, owner=self.owner, is_brief=is_brief, is_look=is_look)

    def _publish(self, *, cut: bool = False) -> None:
        """Show readers what the session is now."""
        state = self._state
        self._snapshot = Snapshot(
            state.recipe(), state.roles, tuple(state.records), self._snapshot.epoch + (1 if cut else 0)
        )

    def _until_cancelled(self, work: Callable[[], Pieces]) -> Callable[[], Pieces]:
        """`work` with a look, before each piece, at whether somebody has cancelled since now, when it is asked for."""
        cancels = self._cancels

        def pieces() -> Pieces:
            running = work()
            while self._cancels == cancels:
                try:
                    next(running)
                except StopIteration as done:
                    return done.value
                yield
            running.close()
            raise SessionError("It was stopped before it was done. The session is as it was.")

        return pieces

    def _progress(self, what: str) -> OnProgress:
        """Reports pieces done, and raises once somebody has cancelled since now, when the work is asked for."""
        cancels = self._cancels

        def report(done: int, total: int) -> None:
            self.progress = (what, done, total)
            if self._cancels > cancels:
                raise SessionError(
                    f"The {what} was cancelled at {done:,} of {total:,} tokens. The session is as it was."
                )

        return report
