"""The frame a tab gets after its commands: what it lacks of the session, and the answers it waits for.

Only what the browser does not hold is sent, of records, tokens, spellings and the recipe alike: a step of a long
run costs what a step of a short one does. The epoch it reports names a history; the same number is
never given to two histories, not of another branch and not after a restart, so a match is proof. Where a
history was cut (a rewind, a forced token, a fork), the records that both have are not sent again.
"""

from __future__ import annotations

import itertools
import logging
import secrets
from concurrent.futures import wait

import numpy as np
from numpy.typing import NDArray

from engine.errors import LoupeError
from engine.facts import ModelInfo
from engine.records import StepRecord
from explorer.links.link import to_query
from explorer.links.write import link_note
from explorer.live.driver import Answer, TabDriver
from explorer.live.frame import Json, Planes, pack
from explorer.live.model_payload import examples_json, model_json, presets_json
from explorer.live.record_payload import JsonObject, sampling_json, step_json
from explorer.live.spellings import Spellings, common_length
from explorer.live.token_payload import SPLIT_REACH, pieces_json
from explorer.operations.measurements import floor_json, machine_json
from explorer.workspace.branch import Branch
from explorer.workspace.recipe_json import seed_json, since, stop_json, to_json
from explorer.workspace.workspace import Workspace

log = logging.getLogger(__name__)

ATTENTION_AT_ONCE = 4  # newest of the steps sent that bring their attention along: about what the engine still has
ATTENTION_PATIENCE_S = 0.25  # beyond, the page asks for it by itself

HISTORIES = 4  # a page that reports an older one gets everything again

Records = tuple[StepRecord, ...]

_epochs = itertools.count(secrets.randbelow(2**40))  # another start for every process


class PageFrames:
    """Makes the frames of one tab."""

    def __init__(self, driver: TabDriver) -> None:
        self._driver = driver
        self._shown: tuple[str, int] | None = None  # a session, and its own epoch
        self._epoch = next(_epochs)
        self._histories: dict[int, Records] = {}  # what was sent under the latest epochs
        self._count = 0
        self._spellings = Spellings()
        self._model: tuple[ModelInfo, JsonObject] | None = None

    def build(self) -> bytes:
        """The frame for the page instance that spoke last."""
        with self._driver.lock:
            planes = Planes()
            wire, mount = self._driver.wire, self._driver.log
            workspace = self._driver.workspace
            ids: set[int] = set()
            self._count += 1
            header: JsonObject = {
                "frame": self._count,  # Streamlit passes the same bytes on only once, and the page would not ask again
                "mount": wire.mount if wire else None,
                "ack": mount.done,
                "busy": _busy(self._driver),
                "answers": [_answer_json(mount.answers[n], planes, ids) for n in sorted(mount.answers)],
                "model": {**self._model_json(workspace.engine.info), "id": workspace.model_id},
                "machine": machine_json(workspace.engine.machine),
                "presets": presets_json(),
                "examples": examples_json(),
                "limits": workspace.hosting.public(),
                "link": _link_json(workspace),
                "settings": _settings_json(workspace),
                "shared": workspace.shared is not None,
                "undo": _undo_json(workspace),
                "session": None,
            }
            if workspace.active is not None:
                header.update(self._session(workspace, workspace.active, planes, ids))
            header["pieces"] = pieces_json(ids, workspace.engine.tokenizer)
            return pack(header, planes)

    def _model_json(self, info: ModelInfo) -> JsonObject:
        """Made once per model: what is in every frame and never changes is a quarter of the work of making it."""
        if self._model is None or self._model[0] is not info:
            self._model = (info, model_json(info))
        return self._model[1]

    def _session(self, workspace: Workspace, branch: Branch, planes: Planes, ids: set[int]) -> JsonObject:
        snapshot = branch.session.snapshot
        epoch = self._epoch_of(branch.session.id, snapshot.epoch)
        wire = self._driver.wire
        held = self._held(wire.epoch, wire.steps) if wire else ()
        start = common_length(held, snapshot.records)
        new = snapshot.records[start:]
        self._remember(epoch, snapshot.records)
        header: JsonObject = {
            "session": _session_json(workspace, branch, epoch, start),
            "steps_from": start,
            "keeps": wire.epoch if wire and start else None,
            "steps": _steps_json(branch, new, planes),
        }
        ids |= self._spellings.needed(snapshot.records, start)
        if new or len(held) != len(snapshot.records):  # else the browser has them: they came with the steps it holds
            settled = max(0, len(snapshot.recipe.prompt_ids) + start - SPLIT_REACH) if start else 0
            header["tokens_from"] = settled
            header["tokens"] = branch.tokens.json(snapshot.recipe.token_ids, snapshot.roles, settled)
        return header

    def _held(self, epoch: int | None, steps: int) -> Records:
        """The records a browser has that reports so many steps of a history."""
        return () if epoch is None else self._histories.get(epoch, ())[:steps]

    def _remember(self, epoch: int, records: Records) -> None:
        self._histories[epoch] = records
        while len(self._histories) > HISTORIES:
            del self._histories[min(self._histories)]  # epochs only grow

    def _epoch_of(self, session: str, session_epoch: int) -> int:
        if self._shown != (session, session_epoch):
            self._shown = (session, session_epoch)
            self._epoch = next(_epochs)
        return self._epoch


def _busy(driver: TabDriver) -> JsonObject | None:
    if driver.job is None and not driver.backlog:
        return None
    known = driver.workspace.activity.progress()
    words, done, total = known or (driver.job.command.op if driver.job else "working", 0, 0)
    return {"text": words, "done": done, "total": total}


def _answer_json(answer: Answer, planes: Planes, ids: set[int]) -> JsonObject:
    if answer.error is not None:
        kind, message = answer.error
        return {"n": answer.n, "op": answer.op, "ok": False, "error": {"kind": kind, "message": message}}
    assert answer.value is not None, "an answer has a value or an error"
    ids |= answer.value.ids
    return {"n": answer.n, "op": answer.op, "ok": True, "value": answer.value.render(planes)}


def _link_json(workspace: Workspace) -> JsonObject:
    link = workspace.link
    return {
        "prompt": link.prompt,
        "mode": link.mode,
        "step": link.step,
        "layer": link.layer,
        "head": link.head,
        "notes": list(link.notes),
        "asks": None if workspace.branches else workspace.asks,
    }


def _undo_json(workspace: Workspace) -> JsonObject | None:
    """What Undo would bring back."""
    dropped = workspace.dropped
    return None if dropped is None else {"number": dropped.number, "act": dropped.act, "steps": dropped.steps}


def _settings_json(workspace: Workspace) -> JsonObject:
    recipe = workspace.settings_recipe()
    return {
        "sampling": sampling_json(recipe.sampling),
        "stop": stop_json(recipe.stop),
        "seed": seed_json(recipe.seed),
        "solo": workspace.solo,
    }


def _session_json(workspace: Workspace, branch: Branch, epoch: int, held: int) -> JsonObject:
    """The run's facts, without what came with the `held` steps that the browser has of it."""
    saved = workspace.saved()
    assert saved is not None, "a session on screen can be saved"
    model = workspace.shared_model()
    records = branch.records
    return {
        "sid": workspace.sid,
        "epoch": epoch,
        "branch": branch.id,
        "branches": [_branch_json(other) for other in workspace.branches],
        **({} if held else {"prompt": workspace.prompt}),
        "mode": workspace.mode,
        "notes": list(workspace.notes),
        **_settings_json(workspace),
        "finish_reason": records[-1].finish_reason if records else None,
        "recipe": since({**to_json(saved), "model_id": workspace.model_id}, held),
        "url": to_query(workspace.current_link()),
        "link_note": link_note(saved, model),
    }


def _branch_json(branch: Branch) -> JsonObject:
    snapshot = branch.session.snapshot
    return {
        "id": branch.id,
        "label": branch.label,
        "steps": len(snapshot.records),
        "tokens": len(snapshot.recipe.token_ids),
        "parent": branch.parent,
        "at": branch.at,
    }


def _steps_json(branch: Branch, records: tuple[StepRecord, ...], planes: Planes) -> list[Json]:
    attention = _attention_of(branch, records[-ATTENTION_AT_ONCE:])
    info = branch.session.engine.info
    return [
        {**step_json(record, planes, attention.get(record.index)), "floor": floor_json(record, info)}
        for record in records
    ]


def _attention_of(branch: Branch, records: tuple[StepRecord, ...]) -> dict[int, NDArray[np.float32]]:
    """Attention by step, as far as it comes soon. What does not is asked for by the page when it is looked at."""
    try:
        asked = {record.index: branch.attention(record) for record in records}
    except LoupeError:
        return {}
    wait(asked.values(), timeout=ATTENTION_PATIENCE_S)
    found = {}
    for step, future in asked.items():
        if not future.done():
            continue
        error = future.exception()
        if error is None:
            found[step] = future.result()
        else:
            log.warning("no attention for step %d: %s", step, error)
    return found
