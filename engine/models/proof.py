"""A model is proven when the engine starts: a few tokens through it, held against one stock forward pass.

Accepting an architecture is not the same as computing it: one builds a mask of its own from the one it is not given,
another asks the cache for a length that only one session of a batch has. So the same tokens go in as they will later,
in one forward pass, in chunks, one at a time and beside another session; every row of logits, and one row of
attention in each layer, is compared with transformers' own eager forward pass without a cache.

What rounding explains: a value is rounded some 16 times a layer on its way (products, norms, sums). Errors of unit u
are independent, so they add up like a random walk, to sqrt(16 L) u of the values' own spread; both sides err, and some
rows magnify it, so four times that is allowed. With 30 layers this is 0.34 in bfloat16 (0.17 was measured on a healthy
model), 0.04 in float16, 5e-6 in float32, where a ten-thousandth is allowed: no wrong mask, position or scale is as
small. Where a model magnifies rounding more (experts at a near-tie, say), stock attention in another order of sums
tells how far two right ways part.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import torch
from torch import Tensor
from transformers import DynamicCache, PreTrainedModel

from engine.errors import UnsupportedModel
from engine.forward.attention import row_weights
from engine.forward.kv_store import KVStore
from engine.forward.model_runner import Feed, ModelRunner, RowResult

TOKENS = 8  # of the longer sequence; the other leaves it after SHARED tokens and is one longer than that
SHARED = 4
ROUNDINGS = 16  # of a value in one layer
MARGIN = 4.0  # times what rounding explains
LEAST = 1e-4  # of the spread; allowed in any number format
MOST = 0.5  # of the spread; never allowed: unrelated values are 1.4 apart
RULED_OUT = torch.finfo(torch.float32).min / 1e6  # a logit below this is a token that the model never writes

ALONE = "in a prompt's logits"
CHUNK = "in the logits of a prompt's later chunk"
STEP = "in the logits of a decode step"
TOGETHER = "in the logits of two sessions in one forward pass"


@dataclass(frozen=True, slots=True)
class Difference:
    """How far one way of feeding the tokens is from the stock model.

    way      in words: "in one forward pass"
    share    root mean square of the difference, as a share of the spread of the stock values
    largest  the largest difference of one value
    allowed  what `share` may be
    """

    way: str
    share: float
    largest: float
    allowed: float

    @property
    def is_right(self) -> bool:
        return self.share <= self.allowed  # this way round, a NaN is wrong


@dataclass(frozen=True, slots=True)
class Stock:
    """What transformers computes, eager and without a cache.

    logits     (2, TOKENS, V): the longer sequence and the other, in float32 on CPU
    attention  per layer (H, TOKENS), the longer sequence's last row
    """

    ids: Tensor
    logits: Tensor
    attention: list[Tensor]


def prove(runner: ModelRunner, stock: PreTrainedModel, expected: Stock) -> bool:
    """Raise UnsupportedModel where `runner` computes something else than `stock` did.

    Returns whether sessions may share a forward pass: where that alone is wrong, each gets its own.
    """
    wrong = [one for one in _differences(runner, expected) if not one.is_right]
    if wrong:
        noise = min(MOST, MARGIN * _stock_noise(stock, expected))
        wrong = [one for one in wrong if not one.share <= noise]
    if any(one.way != TOGETHER for one in wrong):
        said = "; ".join(f"{one.way} by up to {one.largest:.2g}" for one in wrong[:3])
        raise UnsupportedModel(
            f"{type(runner.model).__name__} computes something else here than in transformers, so it is not shown. "
            f"They differ {said}. The first of these is {wrong[0].share:.2g} of the values' spread, and rounding "
            f"explains {wrong[0].allowed:.1g}. Choose a model of another architecture."
        )
    return not wrong and runner.may_share


def ask_stock(stock: PreTrainedModel) -> Stock:
    """One uncached forward pass of both sequences; causality keeps what follows from reaching what is compared."""
    vocabulary = int(stock.config.get_text_config().vocab_size)
    ids = (torch.arange(2 * TOKENS) * 7919 + 11).remainder(vocabulary).view(2, TOKENS)
    ids[1, :SHARED] = ids[0, :SHARED]
    device = next(stock.parameters()).device
    stock.set_attn_implementation("eager")  # a model that ran in an engine before has ours
    output = stock(input_ids=ids.to(device), use_cache=False, output_attentions=True)
    if output.logits.isnan().any():
        raise UnsupportedModel(
            f"The logits of this {type(stock).__name__} are no numbers in {str(output.logits.dtype)[6:]}, in "
            "transformers as well. Ask for float32 or bfloat16, or fetch the model again."
        )
    layers = [layer for layer in output.attentions or () if layer is not None]
    expected = int(stock.config.get_text_config().num_hidden_layers)
    if len(layers) != expected:
        raise UnsupportedModel(
            f"transformers gives the attention of {len(layers)} of the {expected} layers of a {type(stock).__name__}, "
            "so what would be shown cannot be checked. Choose another model."
        )
    return Stock(ids, output.logits.float().cpu(), [layer[0, :, -1].float().cpu() for layer in layers])


def _differences(runner: ModelRunner, expected: Stock) -> Iterator[Difference]:
    bound = _rounding(runner)
    longer, other = (tuple(row) for row in expected.ids.tolist())
    store = runner.new_store()
    begun = runner.forward([Feed(store, longer[:SHARED])], logit_rows="all").rows[0]
    yield _compare(ALONE, begun.logits, expected.logits[0, :SHARED], bound)
    beside = store.fork(SHARED)
    later = runner.forward([Feed(store, longer[SHARED:-1])], logit_rows="all").rows[0]
    yield _compare(CHUNK, later.logits, expected.logits[0, SHARED:-1], bound)
    alone = store.fork(TOKENS - 1)
    step = runner.forward([Feed(alone, longer[-1:])]).rows[0]
    yield _compare(STEP, step.logits, expected.logits[0, -1:], bound)
    for layer, (ours, theirs) in enumerate(zip(_rows(runner, alone, step, longer), expected.attention, strict=True)):
        yield _compare(f"in the attention of layer {layer}", ours, theirs, bound)
    batch = runner.forward([Feed(store, longer[-1:]), Feed(beside, other[SHARED : SHARED + 1])]).rows
    both = torch.stack([expected.logits[0, -1], expected.logits[1, SHARED]])
    yield _compare(TOGETHER, torch.cat([row.logits for row in batch]), both, bound)


def _rows(runner: ModelRunner, store: KVStore, step: RowResult, ids: tuple[int, ...]) -> list[Tensor]:
    """Weights (H, K) of the newest token in every layer, found as they are when somebody looks."""
    layers = range(runner.num_layers)
    if runner.keys_are_cached and runner.keep_queries:
        return [row_weights(step.queries[layer], store.view(layer, store.length)[0]).cpu() for layer in layers]
    weights = runner.replay(store, ids[-1:], store.length - 1, weights_of=frozenset(layers)).weights
    return [weights[layer][:, -1] for layer in layers]


def _rounding(runner: ModelRunner) -> float:
    """What a difference may be, as a share of the values' spread."""
    unit = torch.finfo(next(runner.model.parameters()).dtype).eps / 2
    return float(min(MOST, max(LEAST, MARGIN * unit * (ROUNDINGS * runner.num_layers) ** 0.5)))


def _compare(way: str, ours: Tensor, stock: Tensor, allowed: float) -> Difference:
    """What a model rules out must be ruled out here too, and is not measured."""
    shown = stock > RULED_OUT
    if not bool(((ours > RULED_OUT) == shown).all()):
        return Difference(way, float("nan"), float("inf"), allowed)
    kept, off = stock[shown], (ours - stock)[shown]
    spread = (kept - kept.mean()).square().mean().sqrt().clamp(min=1e-30)
    return Difference(way, float(off.square().mean().sqrt() / spread), float(off.abs().max()), allowed)


def _stock_noise(stock: PreTrainedModel, expected: Stock) -> float:
    """How far stock attention in another order of sums, with a cache, is from the eager forward pass without one."""
    ids, cache = expected.ids[:1].to(next(stock.parameters()).device), DynamicCache()
    try:
        stock.set_attn_implementation("sdpa")
        rows = [
            stock(input_ids=part, cache=cache, use_cache=True).logits[0].float().cpu()
            for part in (ids[:, :SHARED], ids[:, SHARED:-1], ids[:, -1:])
        ]
    except Exception:  # an architecture without it: nothing speaks for a larger difference
        return 0.0
    finally:
        stock.set_attn_implementation("eager")
    return _compare("", torch.cat(rows), expected.logits[0], 0.0).share
