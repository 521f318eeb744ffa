"""The oracle: one forward pass of stock transformers over everything a session has fed.

Eager attention, transformers' own modules and cache, no code of this engine but the weights. A short session goes
through in one forward pass. A long one goes in pieces, so that others get their turn: they are cut from the end, so
that they do not start where the engine's own prefill chunks do, and no piece keeps more attention weights than fit.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field

import numpy as np
import torch
from numpy.typing import NDArray
from torch import nn
from transformers import DynamicCache, PreTrainedModel

ATTENTION_BYTES = 64 << 20  # eager attention weights of all layers that one forward pass may keep
LOGIT_BYTES = 64 << 20  # rows of logits that one forward pass may give

Pause = Callable[[], None]


@dataclass(slots=True, eq=False)
class StockRun:
    """A run of the stock model over `ids`.

    rows_from  the first position whose logits are wanted
    looked_at  positions whose attention rows are wanted
    chunk      most tokens of a forward pass
    pause      called between layers, also of a single token: lets the steps of others through
    whole      tokens that go through in one forward pass whatever they take: where rotary factors depend on the length
    cache      keys and values of what has been run
    attention  position -> (L, H, K) float32
    """

    stock: PreTrainedModel
    ids: tuple[int, ...]
    rows_from: int
    looked_at: frozenset[int]
    chunk: int
    pause: Pause | None = None
    whole: int = 0
    cache: DynamicCache = field(default_factory=DynamicCache)  # without a config it keeps all of a sliding layer too
    attention: dict[int, NDArray[np.float32]] = field(default_factory=dict)

    def pieces(self) -> Iterator[tuple[int, NDArray[np.float32]]]:
        """Run piece by piece. Gives the position of the first row of each piece's logits, and the rows (R, V)."""
        for start, end in self.cuts():
            yield self._forward(start, end)

    def cuts(self) -> list[tuple[int, int]]:
        """Where each forward pass begins and ends."""
        length, config = len(self.ids), self.stock.config.get_text_config()
        heads = config.num_hidden_layers * config.num_attention_heads
        most = max(1, min(self.chunk, LOGIT_BYTES // (4 * config.vocab_size)))
        if length <= most and heads * length * length * 4 <= ATTENTION_BYTES:
            return [(0, length)]
        alone = {edge for position in self.looked_at for edge in (position, position + 1)}
        edges = sorted({self.whole, length} | {edge for edge in alone if edge > self.whole})
        cuts: list[tuple[int, int]] = [(0, self.whole)] if self.whole else []
        for start, end in itertools.pairwise(edges):
            first = (end - start - 1) % most + 1
            ends = range(start + first, end + 1, most)
            cuts += [(max(start, e - most), e) for e in ends]
        return cuts

    def _forward(self, start: int, end: int) -> tuple[int, NDArray[np.float32]]:
        device = next(self.stock.parameters()).device
        looked = sorted(self.looked_at & frozenset(range(start, end)))
        rows = max(0, end - max(start, self.rows_from))
        with _paused_between_layers(self.stock, self.pause):
            output = self.stock(
                input_ids=torch.tensor([self.ids[start:end]], device=device),
                cache=self.cache,
                use_cache=True,
                output_attentions=bool(looked),
                logits_to_keep=max(1, rows),
            )
        for position in looked:
            kept = [weights[0, :, position - start, : position + 1] for weights in output.attentions]
            self.attention[position] = torch.stack(kept).float().cpu().numpy()
        logits = output.logits[0, output.logits.shape[1] - rows :]
        return end - rows, logits.float().cpu().numpy()


@contextmanager
def _paused_between_layers(model: PreTrainedModel, pause: Pause | None) -> Iterator[None]:
    """Within this context `pause` is called before each decoder layer."""
    with ExitStack() as hooks:
        if pause is not None:
            for layer in _decoder_layers(model):
                hooks.callback(layer.register_forward_pre_hook(lambda *_: pause()).remove)
        yield


def _decoder_layers(model: PreTrainedModel) -> list[nn.Module]:
    count = model.config.get_text_config().num_hidden_layers
    lists = (module for module in model.modules() if isinstance(module, nn.ModuleList) and len(module) == count)
    return list(next(lists, nn.ModuleList()))


def is_stock(model: PreTrainedModel) -> bool:
    """Whether every module runs the program of torch's or transformers' own class, with eager attention."""
    own = all(
        type(module).__module__.partition(".")[0] in ("torch", "transformers") and "forward" not in vars(module)
        for module in model.modules()
    )
    return own and model.config.get_text_config()._attn_implementation == "eager"
