"""One step's way through every block of the model: a replay with the residual stream and its branches read.

A block adds two things to what comes in: what attention gives, and what the MLP gives. Architectures differ in where
norms stand, in names, and in whether both branches read the same. So nothing goes by names: of all that ran in a layer,
those two are looked for that, added to what came in, make what went out. Where none do, that is said.
"""

from __future__ import annotations

from collections.abc import Generator
from contextlib import ExitStack
from dataclasses import dataclass
from itertools import takewhile
from typing import Any

from torch import Tensor, nn

from engine.block import UNKNOWN_SUM, BlockNorms, Blocks, Matrix
from engine.decode.block_calls import Call, LayerCalls, matrices_of, norm_of, noting
from engine.decode.layer_times import decoder_layers
from engine.decode.session_state import SessionState
from engine.forward.model_runner import ModelRunner

LEAST_OFF = 1e-4  # of what went out, that the sum may miss it by
LAYERS_AT_ONCE = 6  # whose numbers are made before others are let in
ROUNDINGS = 8  # units of the number format that it may miss it by


@dataclass(frozen=True, slots=True)
class _Branches:
    """What was added to the residual stream.

    attention, mlp  the last call of each
    between         calls of the MLP's branch, norms included
    middle          the residual stream (D) in between; None where both branches are added at once
    """

    attention: Tensor
    attention_at: int
    mlp: Tensor
    between: list[Call]
    middle: Tensor | None


def blocks_at(runner: ModelRunner, state: SessionState, step: int) -> Generator[None, None, Blocks]:
    """The blocks of a step's newest token: it is fed once more against the cached prefix, and nothing is written.

    Others are not let in between its layers, as they are not in a step: with hooks in place their own layers would go
    another way. They are behind the replay, and between the layers whose numbers are made then. Raises UnknownStep.
    """
    record = state.require_step(step)
    layers = decoder_layers(runner)
    noted, read, logits = _replay(runner, state, list(layers), record.kv_len - 1)
    yield
    has_rope = any("rotary" in name for name, _ in runner.model.named_modules())
    found = [_branches(calls) for calls in noted]
    closed = "" if all(found) else UNKNOWN_SUM
    each: list[BlockNorms] = []
    for calls, branches in zip(noted, found, strict=True):
        if len(each) % LAYERS_AT_ONCE == 0:
            yield
        each.append(_norms(calls, branches if not closed else None, has_rope, record.kv_len - 1))
    return Blocks(
        step=step,
        hidden=0 if noted[0].entered is None else noted[0].entered.numel(),
        norm_name=_norm_name(layers[0]),
        layers=tuple(each),
        final_norm=norm_of(read[0]) if read else None,
        logits=norm_of(logits),
        vocabulary=logits.shape[-1],
        closed=closed,
    )


def _replay(
    runner: ModelRunner, state: SessionState, layers: list[nn.Module], position: int
) -> tuple[list[LayerCalls], list[Tensor], Tensor]:
    """What ran in each layer for the token at `position`, what the head read, and the row of logits (V)."""
    head: nn.Module | None = runner.model.get_output_embeddings()  # type: ignore[no-untyped-call]
    read: list[Tensor] = []
    with noting(layers) as noted, ExitStack() as hooks:
        if head is not None:
            watch = head.register_forward_pre_hook(lambda _, args: read.append(args[0][0, -1]))
            hooks.callback(watch.remove)
        replayed = runner.replay(
            state.store,
            [state.token_ids[position]],
            position,
            logit_rows="last",
            lets_others_in=False,
            on_attention=lambda layer, *tensors: noted[layer].note_attention(*tensors),
        )
    return noted, read, replayed.logits[-1]


def _branches(calls: LayerCalls) -> _Branches | None:
    """The two calls whose sum, added to what came in, is nearest to what went out; None where none is near."""
    at, entered, left = calls.attention, calls.entered, calls.left
    if at is None or entered is None or left is None:
        return None
    times = float(getattr(calls.layer, "residual_multiplier", 1.0))
    width = left.shape
    best: tuple[float, int, int] | None = None
    for a in range(at, min(at + 2, len(calls.calls))):
        for m in range(a + 1, len(calls.calls)):
            first, second = calls.calls[a].gave, calls.calls[m].gave
            if first is None or second is None or first.shape != width or second.shape != width:
                continue
            off = norm_of(entered + times * (first + second) - left)
            best = min(best or (off, a, m), (off, a, m))
    near = max(LEAST_OFF, ROUNDINGS * calls.unit)  # as a share
    if best is None or not best[0] <= near * norm_of(left):
        return None
    _, a, m = best
    attention, mlp = calls.calls[a].gave, calls.calls[m].gave
    assert attention is not None and mlp is not None, "they were added above"
    between = calls.calls[a + 1 : m + 1]
    middle = entered + times * attention
    is_read = _reads(between, middle, entered, near)
    return _Branches(times * attention, a, times * mlp, between, middle if is_read else None)


def _reads(calls: list[Call], middle: Tensor, entered: Tensor, near: float) -> bool:
    """Whether one of these read the residual stream after attention, rather than the one before it."""
    took = [call.took for call in calls if call.took is not None and call.took.shape == middle.shape]
    off = min((norm_of(row - middle) for row in took), default=float("inf"))
    return off <= near * norm_of(middle) and off < min(norm_of(row - entered) for row in took)


def _norms(calls: LayerCalls, branches: _Branches | None, has_rope: bool, position: int) -> BlockNorms:
    """A layer in numbers; without `branches`, only what surrounds its parts and what its attention did.

    A layer without RoPE in a model with it is told by its queries, which come to attention as they were given. At
    position 0 no layer's are turned.
    """
    attended, entered, left = calls.attended, calls.entered, calls.left
    assert attended is not None and entered is not None and left is not None, "the layer has run"
    parts: dict[str, Any] = dict.fromkeys(
        ("first_norm", "projected", "attention_norm", "attention_added", "middle", "second_norm", "inner", "mlp",
         "mlp_norm", "mlp_added")
    )  # fmt: skip
    has_experts = False
    matrices: tuple[Matrix, ...] = ()
    if branches is not None:
        has_experts, matrices = _fill(parts, calls, branches)
    return BlockNorms(
        entered=norm_of(entered),
        query=attended.query,
        key=attended.key,
        value=attended.value,
        attended=attended.output,
        left=norm_of(left),
        heads=attended.heads,
        keys_read=attended.keys_read,
        is_rotated=has_rope and (position == 0 or attended.is_turned is not False),
        has_experts=has_experts,
        matrices=matrices,
        **parts,
    )


def _fill(parts: dict[str, Any], calls: LayerCalls, branches: _Branches) -> tuple[bool, tuple[Matrix, ...]]:
    """Put the norms of both branches into `parts`. Returns whether the MLP has experts, and else its matrices."""
    at = calls.attention
    assert at is not None, "branches were found by it"
    body = branches.between
    before = list(takewhile(lambda call: call.is_norm, body))
    body = body[len(before) :]
    after = body[-1:] if len(body) > 1 and body[-1].is_norm else []
    body = body[: len(body) - len(after)]
    parts["first_norm"] = _gave([call for call in calls.calls[:at] if call.is_norm])
    parts["projected"] = _gave(calls.calls[at : at + 1])
    parts["attention_norm"] = _gave(calls.calls[at + 1 : at + 2]) if branches.attention_at > at else None
    parts["attention_added"], parts["mlp_added"] = norm_of(branches.attention), norm_of(branches.mlp)
    parts["middle"] = None if branches.middle is None else norm_of(branches.middle)
    parts["second_norm"], parts["mlp"], parts["mlp_norm"] = _gave(before), _gave(body), _gave(after)
    if any(name.endswith("experts") for call in body for name, _ in call.module.named_modules()):
        return True, ()
    if calls.inner:
        parts["inner"] = calls.inner[-1][1]
    own = {id(matrix) for call in body for matrix in matrices_of(call.module)}
    named = [(name.rpartition(".")[2], module) for name, module in calls.layer.named_modules() if id(module) in own]
    return False, tuple(_matrix(name, module, body[0].took) for name, module in named)


def _gave(calls: list[Call]) -> float | None:
    return norm_of(calls[-1].gave) if calls and calls[-1].gave is not None else None


def _matrix(name: str, module: nn.Module, read: Tensor | None) -> Matrix:
    """Its sizes: nn.Linear keeps (out, in), GPT-2's Conv1D (in, out). Its product is made again where it reads `read`.

    Kernels may have made it together with others', so that nothing of its own was there to be noted.
    """
    weight: Tensor = getattr(module, "weight")  # noqa: B009  # typed as a module or a tensor otherwise
    first, second = weight.shape
    inputs, outputs = (first, second) if type(module).__name__ == "Conv1D" else (second, first)
    if read is None or read.numel() != inputs:
        return Matrix(name, inputs, outputs, None)
    gave = module(read.view(1, 1, -1).to(weight.device, weight.dtype))
    return Matrix(name, inputs, outputs, norm_of(gave[0, 0]))


def _norm_name(layer: nn.Module) -> str:
    """The field's name for the norms of this layer."""
    names = [type(module).__name__ for module in layer.modules() if "norm" in type(module).__name__.lower()]
    return "RMSNorm" if any("rms" in name.lower() for name in names) else "LayerNorm"
