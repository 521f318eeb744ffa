"""Operations that only look: another setting tried out, a token by name, attention, the self-test. Nothing moves."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from engine.block import Blocks
from engine.errors import UnknownHead, UnknownLayer
from explorer.engines import bridge
from explorer.live.block_payload import blocks_json
from explorer.live.record_payload import (
    attention_json,
    candidates_json,
    checks_json,
    ids_of_candidates,
    max_pooled,
    prompt_rows_json,
    standing_json,
)
from explorer.operations import checked
from explorer.operations.operation import Args, Running, Value, active, plain, step_of
from explorer.workspace.workspace import Workspace

LARGEST_MAP = 1024  # rows and columns of a prompt's map that are sent; a longer prompt's is pooled


def what_if(workspace: Workspace, args: Args) -> Running:
    """A step's distribution under other settings."""
    branch = active(workspace)
    step = step_of(branch, args)
    sampling = checked.sampling(args.get("sampling"), branch.records[step].sampling)
    candidates, stages = yield branch.session.what_if(step, sampling)
    ids = frozenset(ids_of_candidates(candidates, stages))
    return Value(lambda planes: {"step": step, **candidates_json(candidates, stages, planes)}, ids)


def ask(workspace: Workspace, args: Args) -> Running:
    """Which tokens a text may be, and where each stood at a step among all."""
    branch = active(workspace)
    step = step_of(branch, args)
    tokenizer = workspace.engine.tokenizer
    token_ids = tokenizer.readings(checked.text(args.get("text"), "text", 400), workspace.engine.info.vocab_size)
    found = yield branch.session.standings(step, token_ids)
    return plain(step=step, readings=[standing_json(one, tokenizer.piece(one.token_id)) for one in found])


def attention(workspace: Workspace, args: Args) -> Running:
    """All heads of one step."""
    branch = active(workspace)
    step = step_of(branch, args)
    weights: NDArray[np.float32] = yield branch.session.attention(step)
    return Value(lambda planes: {"step": step, **attention_json(weights, planes)})


def attention_layer(workspace: Workspace, args: Args) -> Running:
    """All heads of one layer of one step, every key."""
    branch = active(workspace)
    step, layer = step_of(branch, args), _layer(workspace, args)
    weights: NDArray[np.float32] = yield branch.session.attention(step)
    rows = weights[layer].copy()  # the other layers need not be kept until the answer is acknowledged
    return Value(lambda planes: {"step": step, "layer": layer, "weights": planes.add(rows, "f2")})


def blocks(workspace: Workspace, args: Args) -> Running:
    """What the newest token of a step went through in every layer."""
    branch = active(workspace)
    found: Blocks = yield branch.session.blocks(step_of(branch, args))
    return plain(**blocks_json(found, workspace.engine.info.shape.experts))


def triangle(workspace: Workspace, args: Args) -> Running:
    """One head's map over the whole prompt."""
    branch = active(workspace)
    layer, head = _layer(workspace, args), _head(workspace, args)
    workspace.activity.session = branch.session
    weights: NDArray[np.float32] = yield branch.session.prompt_attention(layer, head)
    tokens = weights.shape[0]
    if tokens <= LARGEST_MAP:
        return Value(lambda planes: {"layer": layer, "head": head, "weights": planes.add(weights, "f2")})
    pooled = max_pooled(max_pooled(weights, LARGEST_MAP).T / 255, LARGEST_MAP).T
    return Value(lambda planes: {"layer": layer, "head": head, "weights": planes.add(pooled, "u1"), "tokens": tokens})


def prompt_rows(workspace: Workspace, args: Args) -> Running:
    """What the model would have said after each prompt token."""
    branch = active(workspace)
    workspace.activity.session = branch.session
    rows = yield branch.session.prompt_rows()
    ids: set[int] = set()
    ids.update(*(row.top_ids.tolist() for row in rows))
    return Value(lambda planes: {"rows": prompt_rows_json(rows)}, frozenset(ids))


def check(workspace: Workspace, args: Args) -> Running:
    """The live self-test of the session on screen."""
    branch = active(workspace)
    workspace.activity.session, workspace.activity.words = branch.session, ("checking the numbers", 0, 0)
    checks: Any = yield bridge.check_numbers(branch.session)
    return plain(checks=checks_json(checks), step=branch.newest)


def _layer(workspace: Workspace, args: Args) -> int:
    layer = checked.whole(args.get("layer"), "layer", 0, 2**31)
    if layer >= workspace.engine.info.num_layers:
        raise UnknownLayer(f"There is no layer {layer}: this model has {workspace.engine.info.num_layers}.")
    return layer


def _head(workspace: Workspace, args: Args) -> int:
    head = checked.whole(args.get("head"), "head", 0, 2**31)
    if head >= workspace.engine.info.num_heads:
        raise UnknownHead(f"There is no head {head}: this model has {workspace.engine.info.num_heads}.")
    return head
