"""What the modules of a decoder layer took and gave for the newest token, noted while one replay runs.

Hooks stand on whatever lies right inside a layer, found by type and not by name, and only while the replay runs. With
hooks in place a layer goes its longer way, module by module; the numbers are those of the step, rounding apart.

Letters in shapes: M tokens fed, D width of the residual stream, H query heads, G key-value heads, K keys.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from functools import partial
from typing import Any

import torch
from torch import Tensor, nn

from engine.block import Heads

SAME_WAY = 1 - 1e-4  # cosine of two rows that are one: in bfloat16 rounding takes a tenth of that


@dataclass(frozen=True, slots=True)
class Call:
    """A module that ran: the newest token's row of what it took and gave; None where that is not (D)."""

    module: nn.Module
    took: Tensor | None
    gave: Tensor | None

    @property
    def is_norm(self) -> bool:
        return "norm" in type(self.module).__name__.lower()


@dataclass(frozen=True, slots=True)
class Attended:
    """What a layer's attention got and gave, as L2 norms over all heads.

    is_turned  whether a query points elsewhere than it did when the layer's own modules gave it; None: they gave none
    """

    query: float
    key: float
    value: float
    output: float
    heads: Heads
    keys_read: int
    is_turned: bool | None


@dataclass(slots=True)
class LayerCalls:
    """One layer during the replay.

    entered, left  the residual stream (D) before and after it
    unit           the last place of its number format, at 1
    calls          modules right inside it, in the order in which they ended
    attention      place in `calls` of the one with the attention
    inner          L2 norm of what each matrix outside of attention read, in order
    given          what the modules of its attention gave before the queries, keys and values met: rows of any width
    """

    layer: nn.Module
    entered: Tensor | None = None
    left: Tensor | None = None
    unit: float = 0.0
    calls: list[Call] = field(default_factory=list)
    attended: Attended | None = None
    attention: int | None = None
    inner: list[tuple[nn.Module, float]] = field(default_factory=list)
    given: list[Tensor] = field(default_factory=list)

    def note_attention(
        self, _: nn.Module, query: Tensor, key: Tensor, value: Tensor, output: Tensor, mask: Tensor | None
    ) -> None:
        """Called by the attention function: query, output (1, H, M, ·), key, value (1, G, K, ·), mask (1, 1, M, K)."""
        self.attended = Attended(
            query=norm_of(query[0, :, -1]),
            key=norm_of(key[0, :, -1]),
            value=norm_of(value[0, :, -1]),
            output=norm_of(output[0, :, -1]),
            heads=Heads(query.shape[1], key.shape[1], query.shape[-1], value.shape[-1]),
            keys_read=key.shape[2] if mask is None else int(mask[0, 0, -1].sum()),
            is_turned=_is_turned(query[0, :, -1], self.given),
        )
        self.given.clear()


@contextmanager
def noting(layers: Sequence[nn.Module]) -> Iterator[list[LayerCalls]]:
    """Within this context, what runs inside `layers` is noted."""
    noted = [LayerCalls(layer) for layer in layers]
    with ExitStack() as hooks:
        for calls in noted:
            hooks.callback(calls.layer.register_forward_hook(partial(_note_layer, calls), with_kwargs=True).remove)
            for child in calls.layer.children():
                if isinstance(child, (nn.Dropout, nn.Identity)):
                    continue
                hooks.callback(child.register_forward_hook(partial(_note_child, calls), with_kwargs=True).remove)
                if holds_attention(child):
                    for part in child.modules():
                        hooks.callback(part.register_forward_hook(partial(_note_given, calls)).remove)
                    continue
                for matrix in matrices_of(child):
                    hooks.callback(matrix.register_forward_pre_hook(partial(_note_matrix, calls)).remove)
        yield noted


def holds_attention(child: nn.Module) -> bool:
    """Whether this part of a layer caches keys and values: those modules know the number of their layer."""
    return any(isinstance(getattr(module, "layer_idx", None), int) for module in child.modules())


def matrices_of(module: nn.Module) -> list[nn.Module]:
    """Modules that multiply by one matrix."""
    return [
        m for m in module.modules() if isinstance(weight := getattr(m, "weight", None), Tensor) and weight.dim() == 2
    ]


def norm_of(row: Tensor) -> float:
    """L2 norm, in float32 or better whatever the model runs in."""
    return float(torch.linalg.vector_norm(row.float()))


def _note_layer(calls: LayerCalls, _: nn.Module, args: Any, kwargs: Any, output: Any) -> None:
    calls.entered, calls.left = _row(_input(args, kwargs)), _row(output)
    calls.unit = torch.finfo((output[0] if isinstance(output, (tuple, list)) else output).dtype).eps


def _note_child(calls: LayerCalls, module: nn.Module, args: Any, kwargs: Any, output: Any) -> None:
    if calls.attention is None and calls.attended is not None:
        calls.attention = len(calls.calls)
    calls.calls.append(Call(module, _row(_input(args, kwargs)), _row(output)))


def _note_matrix(calls: LayerCalls, module: nn.Module, args: Any) -> None:
    row = _row(args)
    if row is not None:
        calls.inner.append((module, norm_of(row)))


def _note_given(calls: LayerCalls, module: nn.Module, args: Any, output: Any) -> None:
    """One token is fed, so that all of an output is that token's: its heads may stand in any axis.

    A norm counts only if what it read had been given so: Llama 4 norms its queries after it has rotated them.
    """
    if calls.attended is not None or not isinstance(output, Tensor):
        return
    read = args[0] if args and isinstance(args[0], Tensor) else None
    if matrices_of(module) or read is None or not _is_turned(read.reshape(-1, read.shape[-1]), calls.given):
        calls.given.append(output.detach().to("cpu", torch.float32, copy=True).flatten())


def _is_turned(query: Tensor, given: Sequence[Tensor]) -> bool | None:
    """Whether any head's query (H, width) has another direction than all that was given: a scaled one keeps its own.

    Where q, k and v come out of one matrix, head by head or side by side, the query is one of its pieces of that width.
    """
    width = query.shape[-1]
    pieces = [row.view(-1, width) for row in given if row.numel() % width == 0]
    if not pieces:
        return None
    heads = torch.nn.functional.normalize(query.to("cpu", torch.float32), dim=-1)  # (H, width)
    cosines = heads @ torch.nn.functional.normalize(torch.cat(pieces), dim=-1).T  # (H, pieces)
    return bool(cosines.amax(dim=-1).min() < SAME_WAY)


def _input(args: Any, kwargs: Any) -> Any:
    return args[0] if args else kwargs.get("hidden_states")


def _row(value: Any) -> Tensor | None:
    """The last row of a tensor, or of the first of several, float32 on CPU.

    A copy, for some kernels write over what they gave, and layers may lie on several devices.
    """
    if isinstance(value, (tuple, list)):
        value = value[0] if value else None
    if not isinstance(value, Tensor) or not value.dim():
        return None
    return value.reshape(-1, value.shape[-1])[-1].to("cpu", torch.float32, copy=True)
