"""What a page may ask for, by name, and how one such operation is carried out on the event loop."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Mapping
from concurrent.futures import Future
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

from engine.errors import EngineFault, LoupeError
from explorer.operations import (
    compare,
    inspect_step,
    lesson,
    measurements,
    open_session,
    recordings,
    run_steps,
    share_with_host,
    undo,
)
from explorer.operations.operation import Args, Operation, Running, Value
from explorer.workspace.workspace import Workspace

log = logging.getLogger(__name__)

LONG_S = 0.25  # what takes longer is shown with its progress, as often as this

CANCELLABLE = frozenset(
    {
        "hello",
        "prefill",
        "model",
        "follow_link",
        "lesson_run",
        "prompt_rows",
        "undo",
        "save_run",
        "go_live",
        "check",
        "layer_times",
        "triangle",
    }
)

OPERATIONS: Mapping[str, Operation] = {
    "hello": open_session.hello,
    "model": open_session.model,
    "follow_link": open_session.follow_link,
    "prefill": run_steps.prefill,
    "step": run_steps.step,
    "rewind": run_steps.rewind,
    "fork": run_steps.fork,
    "switch": run_steps.switch,
    "force": run_steps.force,
    "reset": run_steps.reset,
    "undo": undo.undo,
    "stop": run_steps.stop,
    "settings": run_steps.settings,
    "preset": run_steps.preset,
    "select": run_steps.select,
    "what_if": inspect_step.what_if,
    "ask": inspect_step.ask,
    "attention": inspect_step.attention,
    "attention_layer": inspect_step.attention_layer,
    "blocks": inspect_step.blocks,
    "triangle": inspect_step.triangle,
    "prompt_rows": inspect_step.prompt_rows,
    "check": inspect_step.check,
    "compare": compare.compare,
    "step_both": compare.step_both,
    "lessons": lesson.lessons,
    "lesson": lesson.lesson,
    "lesson_run": lesson.lesson_run,
    "share": share_with_host.share,
    "save_run": recordings.save_run,
    "go_live": recordings.go_live,
    "measure_machine": measurements.measure_machine,
    "layer_times": measurements.layer_times,
}


@dataclass(frozen=True, slots=True)
class Outcome:
    """What became of an operation: a value, or an error with its kind and a message for people."""

    value: Value | None = None
    error: tuple[str, str] | None = None


async def carry_out(workspace: Workspace, op: str, args: Args, still_busy: Callable[[], None]) -> Outcome:
    """Run one operation to its end. `still_busy` is called again and again while it takes long."""
    operation = OPERATIONS.get(op)
    if operation is None:
        return Outcome(error=("BadCommand", f"The page asked for {op!r}, which does not exist. Reload the page."))
    running = _on_a_running_engine(operation, workspace, args)
    ticker = asyncio.create_task(_tick(still_busy))
    try:
        return Outcome(value=await _drive(running))
    except LoupeError as error:
        return Outcome(error=(type(error).__name__, words_of(error, workspace)))
    except Exception:
        log.exception("the command %r failed", op)
        message = "Something went wrong inside Loupe; the server's log has the details. The session is as it was."
        return Outcome(error=("InternalError", message))
    finally:
        ticker.cancel()
        running.close()
        workspace.activity.clear()


async def _tick(still_busy: Callable[[], None]) -> None:
    while True:
        await asyncio.sleep(LONG_S)
        still_busy()


def words_of(error: LoupeError, workspace: Workspace) -> str:
    """What a person reads. What failed inside is for whoever owns the machine, and never for a visitor."""
    detail = error.detail if isinstance(error, EngineFault) and not workspace.hosting.is_hosted else ""
    return f"{error} ({detail})" if detail else str(error)


async def _drive(running: Running) -> Value:
    """Give an operation what it waits for, until it returns."""
    try:
        waits_for = next(running)
        while True:
            if isinstance(waits_for, float):
                await asyncio.sleep(waits_for)
                waits_for = running.send(None)
                continue
            await _until_done(waits_for)
            error = waits_for.exception()
            waits_for = running.send(waits_for.result()) if error is None else running.throw(error)
    except StopIteration as stop:
        value: Value = stop.value
        return value


async def _until_done(future: Future[Any]) -> None:
    """Wait without ever cancelling what the engine does: other commands depend on the order of its work."""
    if future.done():
        return
    loop, done = asyncio.get_running_loop(), asyncio.Event()

    def tell(_: Future[Any]) -> None:
        with suppress(RuntimeError):  # the server has ended meanwhile
            loop.call_soon_threadsafe(done.set)

    future.add_done_callback(tell)
    await done.wait()


def _on_a_running_engine(operation: Operation, workspace: Workspace, args: Args) -> Running:
    """The operation, where the engine has ended on the one that replaces it, once the lost runs are rebuilt there."""
    if not workspace.engine.is_alive:
        yield from open_session.move_to_running_engine(workspace)
    if any(branch.is_lost for branch in workspace.branches):
        yield from open_session.rebuild_lost(workspace)
    return (yield from operation(workspace, args))
