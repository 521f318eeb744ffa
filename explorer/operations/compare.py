"""Two branches at one step: their distributions, what each gave to the other's token, and both stepped at once.

A comparison moves neither run. A branch that is not on screen stays where it is.
"""

from __future__ import annotations

from collections.abc import Generator
from concurrent.futures import Future
from typing import Any

import numpy as np

from engine.divergence import Distributions, Divergence, LogProbs, divergence
from engine.errors import LoupeError, NotPrefilled, SessionError, SessionFinished
from engine.records import StepRecord
from explorer.live.frame import Json, Planes, number
from explorer.live.record_payload import candidates_json, ids_of_candidates
from explorer.operations import checked
from explorer.operations.operation import Args, Running, Value, active, step_of
from explorer.workspace.branch import Branch
from explorer.workspace.workspace import Workspace

JsonObject = dict[str, Json]


def compare(workspace: Workspace, args: Args) -> Running:
    """The branch on screen (`one`) and another (`other`) at a step that both have."""
    one, other = active(workspace), _other(workspace, args)
    step = step_of(one, args)
    step_of(other, args)
    first: Distributions = yield one.session.distributions(step)
    second: Distributions = yield other.session.distributions(step)
    records = [branch.records[step] for branch in (one, other)]
    drawn = [record.draw.token_id for record in records]
    # All numbers are made now: an answer is kept until the page has it, and a whole vocabulary's rows need not be.
    facts: JsonObject = {
        "step": step,
        "parts_at": _parts_at(one, other),
        "raw": _both_ways(first.raw, second.raw),
        "final": _both_ways(first.final, second.final),
    }
    sides = [_side_json(one, records[0], first, drawn[1]), _side_json(other, records[1], second, drawn[0])]

    def render(planes: Planes) -> JsonObject:
        a, b = (
            {**side, **candidates_json(record.candidates, record.stages, planes)}
            for side, record in zip(sides, records, strict=True)
        )
        return {**facts, "one": a, "other": b}

    ids = {*drawn, *one.session.recipe.token_ids, *other.session.recipe.token_ids}
    ids.update(*(ids_of_candidates(record.candidates, record.stages) for record in records))
    return Value(render, frozenset(ids))


def step_both(workspace: Workspace, args: Args) -> Running:
    """The next token of the branch on screen and of another, in one forward where the model and settings allow it."""
    pair = (active(workspace), _other(workspace, args))
    for branch in pair:
        if branch.records[-1].finish_reason is not None:
            raise SessionFinished(f"{branch.label} has ended, so both cannot step. Rewind it, or step the other alone.")
    for _ in pair:
        pause = workspace.pace.wait_s()
        if pause > 0:
            yield pause
    for (
        branch
    ) in pair:  # a cache that was released is filled first, or one would step while the other waits for its own
        yield branch.session.look(lambda state: None)
    records = yield from _all_of(pair[0].session.step_with([pair[1].session]))
    steps: list[Json] = [
        {
            "branch": branch.id,
            "step": record.index,
            "batch_size": record.batch_size,
            "token_id": record.draw.token_id,
            "finish_reason": record.finish_reason,
        }
        for branch, record in zip(pair, records, strict=True)
    ]
    return Value(lambda planes: {"steps": steps}, frozenset(record.draw.token_id for record in records))


def _all_of(futures: list[Future[StepRecord]]) -> Generator[Future[Any], Any, list[StepRecord]]:
    """Every record. Where one fails the others are waited for all the same: they have been asked for."""
    records: list[StepRecord] = []
    failed: LoupeError | None = None
    for future in futures:
        try:
            records.append((yield future))
        except LoupeError as error:
            failed = failed or error
    if failed is not None:
        raise failed
    return records


def _other(workspace: Workspace, args: Args) -> Branch:
    wanted = checked.whole(args.get("branch"), "branch", 0, 2**31)
    found = next((branch for branch in workspace.branches if branch.id == wanted), None)
    if found is None:
        raise SessionError(f"There is no run {wanted} in this tab.")
    if found is workspace.active:
        raise SessionError(f"{found.label} is the one on screen. Choose another to compare it with.")
    if not found.records:
        raise NotPrefilled(f"{found.label} has no step yet.")
    return found


def _parts_at(one: Branch, other: Branch) -> int:
    """Number of the first token in which two runs differ; where one is the beginning of the other, its length."""
    a, b = (np.array(branch.session.recipe.token_ids) for branch in (one, other))
    shared = min(a.size, b.size)
    differs = np.flatnonzero(a[:shared] != b[:shared])
    return int(differs[0]) if differs.size else shared


def _both_ways(first: LogProbs, second: LogProbs) -> JsonObject:
    return {
        "one_other": _divergence_json(divergence(first, second)),
        "other_one": _divergence_json(divergence(second, first)),
    }


def _divergence_json(found: Divergence) -> JsonObject:
    """`kl_bits` is null where it is infinite."""
    return {"kl_bits": found.kl_bits, "unshared": number(found.unshared)}


def _side_json(branch: Branch, record: StepRecord, own: Distributions, others: int) -> JsonObject:
    """One branch. `others` is the token that the other branch went on with."""
    snapshot = branch.session.snapshot
    return {
        "branch": branch.id,
        "label": branch.label,
        "tokens": branch.tokens.json(snapshot.recipe.token_ids, snapshot.roles),
        "token_id": record.draw.token_id,
        "raw_prob": float(np.exp(own.raw[record.draw.token_id])),
        "final_prob": float(np.exp(own.final[record.draw.token_id])),
        "raw_prob_of_other": float(np.exp(own.raw[others])),
        "final_prob_of_other": float(np.exp(own.final[others])),
        "batch_size": record.batch_size,
    }
