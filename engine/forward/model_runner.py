"""The one place that calls the model: a batch of sessions forward, or one session replayed.

A forward writes: every session's new keys and values land in its store. A replay only reads: it feeds
tokens that the store already holds, against the cached prefix, to recover what was not kept.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn
from torch.utils.hooks import RemovableHandle
from transformers import PreTrainedModel

from engine.errors import UnsupportedModel
from engine.forward import attention
from engine.forward.forward_pass import ForwardPass, LayerQuery, LayersDone, OnAttention, nobody_listens, running
from engine.forward.kv_store import KVStore
from engine.forward.model_cache import StoreCache
from engine.forward.ragged import RaggedBatch
from engine.forward.rotary import follow_prompts
from engine.forward.scratch import Scratch
from engine.measure.clocks import now_ms, synchronise

LogitRows = Literal["none", "last", "all"]


@dataclass(frozen=True, slots=True)
class Feed:
    """What one session puts into a forward: its store, and the ids that follow what the store holds.

    watched  whether its attention is wanted, where the forward writes it out anyway
    """

    store: KVStore
    token_ids: tuple[int, ...]
    watched: bool = False


@dataclass(frozen=True, slots=True)
class RowResult:
    """What one session gets out of a forward.

    logits     (R, V) float32 on CPU, the last R rows; R is 0 for a prefill chunk that is not the last
    queries    layer -> the last row's query
    attention  (L, H, K) float32, the last row's weights; None where they are still to be found from its queries
    """

    logits: Tensor
    queries: dict[int, LayerQuery]
    attention: NDArray[np.float32] | None = None


@dataclass(frozen=True, slots=True)
class ForwardResult:
    """One forward of the model: a result per session, and the wall time, device synchronised.

    paused_ms  what others took who were let in between its layers; it is not in forward_ms
    """

    rows: tuple[RowResult, ...]
    forward_ms: float
    paused_ms: float = 0.0


@dataclass(frozen=True, slots=True)
class Replay:
    """logits (R, V) float32 on CPU; weights: layer -> (H, M, K) float32 on CPU; queries: layer -> the last row's."""

    logits: Tensor
    weights: dict[int, Tensor]
    queries: dict[int, LayerQuery]


class ModelRunner:
    """Owns the model's forward. Lives on the engine thread, inside torch.inference_mode."""

    def __init__(self, model: PreTrainedModel, *, keep_queries: bool = True, scratch: Scratch | None = None) -> None:
        self.model = model
        self.scratch = scratch or Scratch()
        self.device = next(model.parameters()).device
        self.keep_queries = keep_queries
        self.between_layers: Callable[[], None] | None = None  # called there by every forward on a CPU
        self.num_layers = int(model.config.get_text_config().num_hidden_layers)
        self.num_heads = int(model.config.get_text_config().num_attention_heads)
        attention.install(model)
        follow_prompts(model)
        observed = self._warm_up()
        self.keys_are_cached = observed.direct
        self.layers_are_alike = _alike(observed)
        self.may_share = not observed.asked_length  # a batch has many lengths: whoever asks for one gets a wrong one

    def new_store(self) -> KVStore:
        """An empty cache for one session."""
        return KVStore(self.num_layers, alike=self.layers_are_alike)

    def scratch_store(self) -> KVStore:
        """An empty cache for what no session owns: a study, a check. It counts until it is let go."""
        return self.scratch.count(self.new_store())

    def forward(self, batch: Sequence[Feed], *, logit_rows: LogitRows = "last") -> ForwardResult:
        """Run every session of `batch` in one forward; each must feed the same number of tokens.

        All or nothing: the stores' lengths move last, after everything that can fail, so a forward that failed
        anywhere can be tried again. On a CPU it lets others in between its layers; what they take is not counted as
        its own.
        """
        num_new = len(batch[0].token_ids)
        assert all(len(feed.token_ids) == num_new for feed in batch), "one forward feeds one number of tokens"
        stores = [feed.store for feed in batch]
        for store in stores:
            store.prompt_length = store.prompt_length or num_new
        forward_pass = ForwardPass(
            stores,
            [s.length for s in stores],
            num_new,
            keep_queries=self.keep_queries,
            direct=self.keys_are_cached,
            pause=self._pause(),
            watched=frozenset(place for place, feed in enumerate(batch) if feed.watched),
        )
        logits, elapsed = self._timed(forward_pass, [feed.token_ids for feed in batch], logit_rows)
        host = logits.float().cpu()  # (B, R, V)
        # Cloned, so that what one session keeps of a step does not keep the whole batch's logits alive.
        own = [row.clone() for row in host] if len(batch) > 1 else list(host)
        kept = {} if forward_pass.ragged is None else forward_pass.ragged.rows_kept()
        rows = tuple(
            RowResult(row, queries, kept.get(place))
            for place, (row, queries) in enumerate(zip(own, forward_pass.queries, strict=True))
        )
        result = ForwardResult(rows, elapsed, forward_pass.paused_ms)
        for store in stores:
            store.advance(num_new)
        return result

    def forward_uncached(self, token_ids: Sequence[int]) -> ForwardResult:
        """Run a whole sequence from its first token, keep none of its keys and values, and give its last row.

        It lets others in as any forward does.
        """
        empty = self.new_store()
        empty.prompt_length = len(token_ids)
        forward_pass = ForwardPass(
            [empty],
            [0],
            len(token_ids),
            keep_queries=self.keep_queries,
            keeps_cache=False,
            direct=self.keys_are_cached,
            pause=self._pause(),
        )
        logits, elapsed = self._timed(forward_pass, [tuple(token_ids)], "last")
        assert empty.reserved_bytes == 0, "a forward without a cache writes none"
        return ForwardResult((RowResult(logits[0].float().cpu(), forward_pass.queries[0]),), elapsed)

    def rows_of(self, store: KVStore, queries: Mapping[int, LayerQuery], length: int) -> NDArray[np.float32] | None:
        """Weights (L, H, K) of a step's kept queries over the first `length` tokens; None where it takes a replay."""
        if not self.keys_are_cached or len(queries) < self.num_layers:
            return None
        return attention.rows_of_store([queries[layer] for layer in range(self.num_layers)], store, length)

    def replay(
        self,
        store: KVStore,
        token_ids: Sequence[int],
        start: int,
        *,
        weights_of: frozenset[int] = frozenset(),
        head: int | None = None,
        queries_to: int | None = None,
        logit_rows: LogitRows = "none",
        lets_others_in: bool = True,
        on_attention: OnAttention = nobody_listens,
    ) -> Replay:
        """Feed `token_ids` at positions from `start` against what `store` already holds; write nothing.

        head        of the layers in `weights_of`, keep the weights (1, M, K) of this head alone
        queries_to  keep the last row's query of every layer up to this one
        lets_others_in  between the layers; False where the caller does so at places of its own
        on_attention  is told what each layer's attention got and gave
        """
        assert start + len(token_ids) <= store.length, "a replay feeds tokens that the cache holds"
        wanted = weights_of if queries_to is None else weights_of | {queries_to}
        stop_after = max(wanted) if logit_rows == "none" and wanted else None
        forward_pass = ForwardPass(
            [store],
            [start],
            len(token_ids),
            keep_queries=queries_to is not None,
            weights_of=weights_of,
            weights_of_head=head,
            read_only=True,
            stop_after=stop_after,
            direct=self.keys_are_cached,
            pause=self._pause() if lets_others_in else None,
            on_attention=on_attention,
        )
        try:
            logits = self._call(forward_pass, [tuple(token_ids)], logit_rows)
        except LayersDone:
            logits = torch.empty(1, 0, 0)
        weights = {layer: w[0].cpu() for layer, w in forward_pass.weights.items()}
        return Replay(logits[0].float().cpu(), weights, forward_pass.queries[0])

    def _timed(
        self, forward_pass: ForwardPass, token_ids: Sequence[Sequence[int]], logit_rows: LogitRows
    ) -> tuple[Tensor, float]:
        """Logits (B, R, V) on the model's device, and the forward's own ms, device synchronised at both ends."""
        synchronise(self.device)
        started = now_ms()
        if self._can_share(forward_pass):
            forward_pass.ragged = RaggedBatch(forward_pass.stores, forward_pass.watched)
        logits = self._call(forward_pass, token_ids, logit_rows)
        forward_pass.hand_out()
        synchronise(self.device)
        return logits, now_ms() - started - forward_pass.paused_ms

    def _pause(self) -> Callable[[], None] | None:
        """What a forward calls between its layers: on CUDA nothing, a layer is not over when its call is."""
        return self.between_layers if self.device.type == "cpu" else None

    def let_others_in(self) -> None:
        """Between two pieces of long work that are no forwards: those who wait for a step."""
        if self.between_layers is not None:
            self.between_layers()

    def _can_share(self, forward_pass: ForwardPass) -> bool:
        """Whether this is a decode step whose sessions can be read side by side."""
        several = len(forward_pass.stores) > 1 and forward_pass.num_new == 1
        return several and self.keys_are_cached and self.layers_are_alike and min(forward_pass.past) > 0

    def _call(self, forward_pass: ForwardPass, token_ids: Sequence[Sequence[int]], logit_rows: LogitRows) -> Tensor:
        """Logits (B, R, V) on the model's device."""
        input_ids = torch.tensor(token_ids, device=self.device)  # (B, M)
        past = torch.tensor(forward_pass.past, device=self.device)
        positions = past[:, None] + torch.arange(forward_pass.num_new, device=self.device)  # (B, M)
        keep = {"none": 1, "last": 1, "all": 0}[logit_rows]  # transformers reads 0 as "every row"
        with running(forward_pass):
            output = self.model(
                input_ids=input_ids,
                position_ids=positions,
                cache=StoreCache(forward_pass, self.num_layers),
                use_cache=True,
                logits_to_keep=keep,
            )
        logits: Tensor = output.logits
        return logits[:, :0] if logit_rows == "none" else logits

    def _warm_up(self) -> ForwardPass:
        """Run one token and see that every layer comes through our attention. Returns what was observed."""
        store = KVStore(self.num_layers, alike=False)
        forward_pass = ForwardPass([store], [0], 1, keep_queries=False, observe=True)
        name = type(self.model).__name__
        hooks = list(_watch_attention(self.model, forward_pass))
        try:
            self._call(forward_pass, [(0,)], "last")
        except (TypeError, AttributeError, AssertionError) as error:
            raise UnsupportedModel(
                f"{name} cannot be stepped: {error}. Choose a model of another architecture."
            ) from error
        finally:
            for hook in hooks:
                hook.remove()
        missing = sorted(set(range(self.num_layers)) - forward_pass.called)
        if missing:
            raise UnsupportedModel(
                f"{name} computes attention in its own way in {len(missing)} of {self.num_layers} layers, "
                "so it cannot be looked at. Choose a model whose architecture uses transformers' attention interface."
            )
        return forward_pass


def _alike(observed: ForwardPass) -> bool:
    """Whether all layers have the same shapes, and keys those of values."""
    if len(observed.shapes) != 1:
        return False
    shape = next(iter(observed.shapes))  # query (1, H, 1, D), keys (G, 1, D), values (G, 1, D)
    return shape[4:7] == shape[7:]


def _watch_attention(model: nn.Module, forward_pass: ForwardPass) -> Iterator[RemovableHandle]:
    """Let `forward_pass` know while the attention of a layer runs. Masks ask for a length, too, and rightly."""

    def enter(*_: object) -> None:
        forward_pass.in_attention = True

    def leave(*_: object) -> None:
        forward_pass.in_attention = False

    for module in model.modules():
        if isinstance(getattr(module, "layer_idx", None), int):
            yield module.register_forward_pre_hook(enter)
            yield module.register_forward_hook(leave)
