"""Operations of recordings: a run saved as a file, and a recorded run gone on with."""

from __future__ import annotations

import re
from collections.abc import Generator, Iterable, Mapping
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np

from engine.errors import LoupeError, SessionError
from explorer.live.frame import Planes
from explorer.operations import checked
from explorer.operations.open_session import session_of
from explorer.operations.operation import Args, Running, Value, active, plain
from explorer.recordings.single_page import page_of
from explorer.recordings.writing import (
    MOST_ATTENTION_BYTES,
    SUFFIX,
    RecordedRun,
    Rows,
    file_of,
    fits,
    frame_of,
    kept_rows,
)
from explorer.workspace import recipe_json
from explorer.workspace.workspace import Workspace

if TYPE_CHECKING:
    from engine.records import StepRecord
    from explorer.workspace.branch import Branch

_WRITER = ThreadPoolExecutor(1, "loupe-recordings")  # packing takes tens of milliseconds of everybody's event loop
HOSTED_ATTENTION_BYTES = 8_000_000  # what a class's server keeps of one run in memory while it is saved
SAME_MODEL = ("name", "parameters", "num_layers", "num_heads", "num_kv_heads", "vocab_size")


class OtherModel(LoupeError):
    """A recording was made with another model than the one that runs here."""


def save_run(workspace: Workspace, args: Args) -> Running:
    """The run on screen as a recording, or as a page that plays it anywhere."""
    kind = args.get("kind")
    if kind not in ("recording", "page"):
        raise checked.BadCommand(f"kind must be recording or page, got {checked.short(kind)}.")
    branch, saved = active(workspace), workspace.saved()
    assert saved is not None, "a run on screen can be saved"
    records, info = branch.records, workspace.engine.info
    most = HOSTED_ATTENTION_BYTES if workspace.hosting.is_hosted else MOST_ATTENTION_BYTES
    rows = yield from _all_rows(workspace, branch, records, fits(records, info, most))
    run = RecordedRun(
        info,
        workspace.model_id,
        saved,
        records,
        rows,
        workspace.engine.tokenizer,
        workspace.notes,
        workspace.engine.machine,
    )
    make = _recording if kind == "recording" else _page
    data: bytes = yield _WRITER.submit(make, run)
    name = f"{file_stem(workspace.prompt, len(records))}{SUFFIX if kind == 'recording' else '.html'}"
    return Value(lambda planes: _file(planes, name, data))


def _all_rows(
    workspace: Workspace, branch: Branch, records: tuple[StepRecord, ...], is_whole: bool
) -> Generator[Future[Any], Any, tuple[Rows, ...]]:
    rows: list[Rows] = []
    for record in records:
        workspace.activity.words = ("collecting the attention rows", record.index, len(records))
        if workspace.activity.cancelled:
            raise SessionError("Saving was stopped. The run is as it was.")
        rows.append(kept_rows((yield branch.attention(record)), is_whole))
    return tuple(rows)


def _recording(run: RecordedRun) -> bytes:
    return file_of(frame_of(run))


def _page(run: RecordedRun) -> bytes:
    return page_of(file_of(frame_of(run)), title=run.saved.prompt or "").encode()


def _file(planes: Planes, name: str, data: bytes) -> dict[str, Any]:
    return {"name": name, "file": planes.add(np.frombuffer(data, np.uint8), "u1")}


def file_stem(prompt: str | None, steps: int) -> str:
    """What a saved run is called: its first words, and how many steps it has."""
    words = re.sub(r"[^\w]+", "-", (prompt or "").lower()).strip("-_")[:40].strip("-")
    return f"loupe-{words or 'run'}-{steps}-steps"


def go_live(workspace: Workspace, args: Args) -> Running:
    """Go on with a recorded run: it takes the place of what is on screen, which Undo brings back."""
    saved = recipe_json.from_json(args.get("recipe"))
    _require_same_model(workspace, checked.mapping(args.get("model"), "model"))
    _require_same_ids(workspace, checked.mapping(args.get("spelled"), "spelled"), saved.recipe.token_ids)
    workspace.hosting.require_recipe(saved.recipe)
    recipe = replace(saved.recipe, stop=workspace.hosting.bounded(saved.recipe.stop))
    session = yield from session_of(workspace, recipe, saved.roles)
    workspace.dropped = workspace.before("prefill", workspace.branches) or workspace.dropped
    workspace.start_over()
    branch = workspace.add(session)
    workspace.prompt, workspace.mode, workspace.notes = saved.prompt, saved.mode, ()
    workspace.keep_settings()
    return plain(step=branch.newest)


def _require_same_model(workspace: Workspace, recorded: Mapping[str, object]) -> None:
    """Raises OtherModel where name or sizes are others than those of the model that runs here."""
    info = workspace.engine.info
    for name in SAME_MODEL:
        here, there = getattr(info, name), recorded.get(name)
        if here != there:
            raise OtherModel(
                f"This recording was made with {checked.short(recorded.get('name'))}, and {info.name} runs here "
                f"({name} is {checked.short(there)} there and {here!r} here). Load the recording's model, then go on."
            )


def _require_same_ids(workspace: Workspace, spelled: Mapping[str, object], token_ids: Iterable[int]) -> None:
    """Raises OtherModel where a token of the run is another one here, or none."""
    tokenizer, info = workspace.engine.tokenizer, workspace.engine.info
    for token_id in sorted(set(token_ids)):
        here = tokenizer.piece(token_id).raw.hex() if token_id < info.vocab_size else None
        if here is None or here != spelled.get(str(token_id)):
            raise OtherModel(
                f"This recording was made with another vocabulary than {info.name} has: token {token_id} is not "
                "the same in both. Load the recording's model, then go on."
            )
