"""The frames of one connection: what the page lacks of the session, and the answers it waits for.

Only what the page does not hold is sent, of records, tokens, spellings, the recipe and everything else alike: a step of
a long run costs what a step of a short one does. Where a history was cut (a rewind, a forced token, a fork), the
records that both have are not sent again.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Mapping
from concurrent.futures import Future
from typing import Any

import numpy as np
from numpy.typing import NDArray

from engine.errors import LoupeError
from engine.facts import ModelInfo
from explorer.links.link import to_query
from explorer.links.write import link_note
from explorer.live.commands import Outcome
from explorer.live.frame import Json, Planes, pack
from explorer.live.histories import Records
from explorer.live.messages import Held
from explorer.live.model_payload import examples_json, model_json, presets_json
from explorer.live.record_payload import JsonObject, sampling_json, step_json
from explorer.live.spellings import Spellings, common_length
from explorer.live.tab import MountLog, Tab
from explorer.live.token_payload import SPLIT_REACH, pieces_json
from explorer.operations.measurements import floor_json, machine_json
from explorer.workspace.branch import Branch
from explorer.workspace.recipe_json import SavedSession, seed_json, since, stop_json, to_json
from explorer.workspace.workspace import Workspace

log = logging.getLogger(__name__)

ATTENTION_AT_ONCE = 4  # newest of the steps sent that bring their attention along: about what the engine still has
ATTENTION_PATIENCE_S = 0.25  # beyond, the page asks for it by itself

Attention = Mapping[int, NDArray[np.float32]]  # by the identity of a record


class PageFrames:
    """Makes the frames of one connection to a tab.

    have  the history the page holds already
    """

    patience_s = ATTENTION_PATIENCE_S

    def __init__(self, tab: Tab, log: MountLog, have: Held | None) -> None:
        self._tab = tab
        self._log = log
        self._epoch = have.epoch if have else None
        self._records = tab.histories.held(have.epoch, have.steps) if have else ()
        self._sent: dict[str, Json] = {}
        self._answered = 0  # answers up to this number are on their way
        self._number_with_steps = 0  # of the last frame that brought steps or took some away
        self.is_greeted = False  # until then there is no session yet, which is not the same as none
        self._spellings = Spellings()
        self._model: tuple[ModelInfo, JsonObject] | None = None

    async def build(self, number: int, said: Mapping[str, Json]) -> bytes | None:
        """A frame with all that is new and with what is `said` beside it; None where nothing is."""
        branch = self._tab.workspace.active
        records = branch.records if branch else ()
        new = records[common_length(self._records, records) :]
        attention = await _attention_of(branch, new, self.patience_s) if branch else {}
        planes, ids, header = Planes(), set[int](), dict(said)
        answers = [(n, *self._log.answers[n]) for n in sorted(self._log.answers) if n > self._answered]
        if answers:
            self._answered = answers[-1][0]
            header["answers"] = [_answer_json(n, op, outcome, planes, ids) for n, op, outcome in answers]
        self._add_changes(header, self._state())
        self._add_session(header, planes, ids, attention)
        if "steps" in header:
            self._number_with_steps = number
        if not header:
            return None
        pieces = pieces_json(ids, self._tab.workspace.engine.tokenizer)
        if pieces:
            header["pieces"] = pieces
        return pack({"frame": number, **header}, planes)

    def are_on_screen(self, drawn: int) -> bool:
        """Whether all steps are, where the page has drawn frame `drawn`."""
        branch = self._tab.workspace.active
        records = branch.records if branch else ()
        return drawn >= self._number_with_steps and common_length(self._records, records) == len(records)

    def _add_changes(self, header: JsonObject, state: JsonObject) -> None:
        for name, value in state.items():
            if name not in self._sent or self._sent[name] != value:
                header[name] = self._sent[name] = value

    def _state(self) -> JsonObject:
        """What is sent whenever it is another than before."""
        tab, workspace = self._tab, self._tab.workspace
        return {
            "ack": self._log.done,
            "busy": _busy(tab),
            "play": tab.autoplay.json(),
            "model": {**self._model_json(workspace.engine.info), "id": workspace.model_id},
            "machine": machine_json(workspace.engine.machine),
            "presets": presets_json(),
            "examples": examples_json(),
            "limits": workspace.hosting.public(),
            "link": _link_json(workspace),
            "settings": _settings_json(workspace),
            "shared": workspace.shared is not None,
            "undo": _undo_json(workspace),
            "leading": tab.lead.json() if tab.lead else None,
        }

    def _model_json(self, info: ModelInfo) -> JsonObject:
        """Made once per model: most of what is known about one never changes."""
        if self._model is None or self._model[0] is not info:
            self._model = (info, model_json(info))
        return self._model[1]

    def _facts(self, branch: Branch, saved: SavedSession, epoch: int) -> JsonObject:
        return _facts_json(self._tab.workspace, branch, saved, epoch)

    def _add_session(self, header: JsonObject, planes: Planes, ids: set[int], attention: Attention) -> None:
        """The run on screen, as far as it is other than what was sent."""
        workspace = self._tab.workspace
        branch = workspace.active
        if branch is None:
            self._epoch, self._records = None, ()
            if self.is_greeted:
                self._add_changes(header, {"session": None})
            return
        snapshot = branch.session.snapshot
        epoch = self._tab.histories.epoch_of(branch.session.id, snapshot.epoch, snapshot.records)
        start = common_length(self._records, snapshot.records)
        new = snapshot.records[start:]
        saved = workspace.saved()
        assert saved is not None, "a session on screen can be saved"
        facts = self._facts(branch, saved, epoch)
        is_cut = epoch != self._epoch or len(self._records) != len(snapshot.records)
        if new or is_cut or self._sent.get("session") != facts:
            self._sent["session"] = facts
            header["session"] = {**facts, **_recipe_json(workspace, saved, start)}
        if new or is_cut:
            header["steps_from"], header["keeps"] = start, self._epoch if start else None
            header["steps"] = _steps_json(branch, new, attention, planes)
            ids |= self._spellings.needed(snapshot.records, start)
            settled = max(0, len(snapshot.recipe.prompt_ids) + start - SPLIT_REACH) if start else 0
            header["tokens_from"] = settled
            header["tokens"] = branch.tokens.json(snapshot.recipe.token_ids, snapshot.roles, settled)
        self._epoch, self._records = epoch, snapshot.records


def _busy(tab: Tab) -> JsonObject | None:
    """The command under way, once it takes longer than a moment."""
    if tab.under_way is None or not tab.takes_long:
        return None
    words, done, total = tab.workspace.activity.progress() or (tab.under_way.op, 0, 0)
    return {"text": words, "done": done, "total": total}


def _answer_json(n: int, op: str, outcome: Outcome, planes: Planes, ids: set[int]) -> JsonObject:
    if outcome.error is not None:
        kind, message = outcome.error
        return {"n": n, "op": op, "ok": False, "error": {"kind": kind, "message": message}}
    assert outcome.value is not None, "an outcome has a value or an error"
    ids |= outcome.value.ids
    return {"n": n, "op": op, "ok": True, "value": outcome.value.render(planes)}


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


def _facts_json(workspace: Workspace, branch: Branch, saved: SavedSession, epoch: int) -> JsonObject:
    records = branch.records
    return {
        "sid": workspace.sid,
        "epoch": epoch,
        "branch": branch.id,
        "branches": [_branch_json(other) for other in workspace.branches],
        "mode": workspace.mode,
        "notes": list(workspace.notes),
        **_settings_json(workspace),
        "finish_reason": records[-1].finish_reason if records else None,
        "url": to_query(workspace.current_link()),
        "link_note": link_note(saved, workspace.shared_model()),
    }


def _recipe_json(workspace: Workspace, saved: SavedSession, held: int) -> JsonObject:
    """The recipe, without what came with the `held` steps that the page has of it."""
    recipe = since({**to_json(saved), "model_id": workspace.model_id}, held)
    return {"recipe": recipe, **({} if held else {"prompt": workspace.prompt})}


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


def _steps_json(branch: Branch, records: Records, attention: Attention, planes: Planes) -> list[Json]:
    info = branch.session.engine.info
    return [
        {**step_json(record, planes, attention.get(id(record))), "floor": floor_json(record, info)}
        for record in records
    ]


async def _attention_of(branch: Branch, records: Records, patience_s: float) -> Attention:
    """Attention, as far as it comes soon. What does not is asked for by the page when it is looked at."""
    if not records:
        return {}
    try:
        asked = [(record, branch.attention(record)) for record in records[-ATTENTION_AT_ONCE:]]
    except LoupeError:
        return {}
    late = [asyncio.wrap_future(future) for _, future in asked if not future.done()]
    if late:
        await asyncio.wait(late, timeout=patience_s)
    return {id(record): future.result() for record, future in asked if _has_come(future)}


def _has_come(future: Future[Any]) -> bool:
    if not future.done():
        return False
    error = future.exception()
    if error is not None:
        log.warning("no attention for a step: %s", error)
    return error is None
