"""What one forward of the model is doing, for the functions that transformers calls in every layer.

They get no argument of ours, so the forward is found by thread. Forwards nest: one of many tokens may stop between
two layers, let others run theirs, and go on.

Letters in shapes: B sessions in the forward, H query heads, M tokens fed, K keys visible, D width.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field

import torch
from torch import Tensor, nn

from engine.forward.kv_store import KVStore
from engine.forward.ragged import RaggedBatch
from engine.measure.clocks import now_ms

# (layer, its attention module, query (1, H, M, D), key and value (1, G, K, D), output (1, H, M, D), mask)
OnAttention = Callable[[int, nn.Module, Tensor, Tensor, Tensor, Tensor, Tensor | None], None]


def nobody_listens(*_: object) -> None:
    """What a forward tells about its attention, mostly."""


@dataclass(frozen=True, slots=True)
class LayerQuery:
    """What one layer asked of the cache, enough to recompute its weights later.

    query    (H, D) last row, after RoPE
    scaling  what the model multiplies the scores by; never recomputed from the head width
    softcap  scores become softcap * tanh(scores / softcap); None where the model has none
    sink     (H,) extra logit that takes part in the softmax and has no key; None where the model has none
    mask     (K,) True where this layer may look; None for everywhere
    """

    query: Tensor
    scaling: float
    softcap: float | None
    sink: Tensor | None
    mask: Tensor | None

    @property
    def num_bytes(self) -> int:
        return self.query.nbytes + (0 if self.mask is None else self.mask.nbytes)

    def of_row(self, row: int, query: Tensor, length: int) -> LayerQuery:
        """One session's part of a whole batch's, whose mask is (B, 1, 1, K)."""
        mask = None if self.mask is None else self.mask[row, 0, 0, :length].clone()
        return LayerQuery(query, self.scaling, self.softcap, self.sink, mask)


@dataclass(slots=True)
class ForwardPass:
    """What one forward of the model is doing; the attention function and the cache read it.

    stores        one per session in the batch
    past          tokens each store held before the forward
    num_new       tokens fed per session (1 in a decode step)
    keep_queries  whether to keep each session's last query
    weights_of    layers whose full weights are computed inside the call (replay only)
    weights_of_head  the one head they are computed of; None for all
    read_only     the stores already hold these tokens: read them, write nothing
    keeps_cache   False: keys and values serve this forward alone, and reach no store
    stop_after    raise `LayersDone` after this layer; None runs the whole model
    observe       note which layers come through here, and whether their keys are the cached ones
    queries       per session: layer -> LayerQuery
    weights       layer -> (B, H, M, K)
    called        layers that came through here
    direct        whether the keys that reach attention are the cached ones (False for MLA, which expands them)
    ragged        the stores of a decode step of several sessions, where they can be read together
    asked         layer -> the query of every row of `ragged`, (B, H, D)
    watched       places of the sessions whose attention is wanted with the step
    in_attention  whether a layer's attention module is running; with `observe`
    asked_length  whether one asked the cache how long it is, which has one answer for a whole batch; with `observe`
    shapes        the shapes of query, cached keys and cached values that were seen, lengths apart; with `observe`
    pause         called before each layer's attention; it may run other forwards
    paused_ms     what those took
    on_attention  is told what each layer's attention got and gave (replay only)
    """

    stores: list[KVStore]
    past: list[int]
    num_new: int
    keep_queries: bool = True
    weights_of: frozenset[int] = frozenset()
    weights_of_head: int | None = None
    read_only: bool = False
    keeps_cache: bool = True
    stop_after: int | None = None
    observe: bool = False
    queries: list[dict[int, LayerQuery]] = field(default_factory=list)
    weights: dict[int, Tensor] = field(default_factory=dict)
    called: set[int] = field(default_factory=set)
    direct: bool = True
    ragged: RaggedBatch | None = None
    asked: dict[int, LayerQuery] = field(default_factory=dict)
    watched: frozenset[int] = frozenset()
    in_attention: bool = False
    asked_length: bool = False
    shapes: set[tuple[int, ...]] = field(default_factory=set)
    pause: Callable[[], None] | None = None
    paused_ms: float = 0.0
    on_attention: OnAttention = nobody_listens

    def __post_init__(self) -> None:
        self.queries = [{} for _ in self.stores]

    def let_others_in(self) -> None:
        """Between two layers: a long forward stops here for those who wait, and goes on where it was."""
        if self.pause is not None:
            began = now_ms()
            self.pause()
            self.paused_ms += now_ms() - began

    def hand_out(self) -> None:
        """Give every session its part of `asked`: one copy for all layers, so that no session keeps the batch alive."""
        if not self.asked:
            return
        whole = torch.stack([asked.query for asked in self.asked.values()], 1)  # (B, L, H, D)
        for row, past in enumerate(self.past):
            own = whole[row].clone().unbind(0)
            self.queries[row] = {
                layer: asked.of_row(row, query, past + self.num_new)
                for (layer, asked), query in zip(self.asked.items(), own, strict=True)
            }
        self.asked.clear()


class LayersDone(Exception):
    """Ends a replay once the layer that was asked for has been through attention."""


_running = threading.local()  # per engine thread


@contextmanager
def running(forward_pass: ForwardPass) -> Iterator[None]:
    """Within this context, the model's forward finds `forward_pass`; afterwards, the one that it came in between."""
    before = getattr(_running, "current", None)
    _running.current = forward_pass
    try:
        yield
    finally:
        _running.current = before


def current_pass() -> ForwardPass:
    """The forward that this thread is running."""
    found: ForwardPass | None = getattr(_running, "current", None)
    assert found is not None, "the model was called outside ModelRunner"
    return found
