"""What the checks of claims share: short texts, forwards on caches of their own, and comparisons."""

from __future__ import annotations

from collections.abc import Generator, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, TypeAlias

from torch import Tensor

from engine.forward.kv_store import KVStore
from engine.forward.model_runner import Feed, ModelRunner, RowResult
from engine.progress import OnProgress
from engine.studies.claim_records import Finding

if TYPE_CHECKING:
    from engine.llm_engine import LLMEngine

Check: TypeAlias = Generator[None, None, Finding]

TEXT = "The cat sat on the mat and looked at the"  # short: a check answers in a second
OTHER_TEXT = "Once upon a time there was"
NEW_TOKENS = 16
ROUNDING = 1e-4  # of the largest number: far above what float32 loses here, far below any real difference
HALF_ROUNDING = 0.05  # the same for 16-bit formats


@dataclass(slots=True)
class Decoded:
    """A greedy run: the tokens drawn, the row (V) each came from, ms of each forward, and positions fed in all."""

    tokens: list[int] = field(default_factory=list)
    rows: list[Tensor] = field(default_factory=list)
    forward_ms: list[float] = field(default_factory=list)
    positions: int = 0


def ids(engine: LLMEngine, text: str) -> tuple[int, ...]:
    """A text as the loaded model reads it."""
    return engine.tokenizer.encode(text).ids


def forward(runner: ModelRunner, store: KVStore, token_ids: Sequence[int], *, every_row: bool = False) -> RowResult:
    """Feed ids behind what `store` holds; logits (R, V) of the last row, or of every one."""
    feed = Feed(store, tuple(token_ids))
    return runner.forward([feed], logit_rows="all" if every_row else "last").rows[0]


def decoded(
    runner: ModelRunner, prompt: Sequence[int], count: int, report: OnProgress
) -> Generator[None, None, Decoded]:
    """Draw `count` tokens greedily with a cache, stopping at nothing."""
    store, out, fed = runner.scratch_store(), Decoded(), tuple(prompt)
    for _ in range(count):
        result = runner.forward([Feed(store, fed)])
        _take(out, result.rows[0].logits[-1], result.forward_ms, len(fed))
        fed = (out.tokens[-1],)
        report(len(out.tokens), count)
        yield
    return out


def decoded_anew(
    runner: ModelRunner, prompt: Sequence[int], followed: Sequence[int], report: OnProgress
) -> Generator[None, None, Decoded]:
    """The same without a cache: each step feeds the whole text, which goes on with `followed`, whatever is drawn."""
    out = Decoded()
    for step in range(len(followed)):
        fed = (*prompt, *followed[:step])
        result = runner.forward([Feed(runner.scratch_store(), fed)])
        _take(out, result.rows[0].logits[-1], result.forward_ms, len(fed))
        report(step + 1, len(followed))
        yield
    return out


def _take(out: Decoded, row: Tensor, forward_ms: float, fed: int) -> None:
    out.tokens.append(int(row.argmax()))
    out.rows.append(row)
    out.forward_ms.append(forward_ms)
    out.positions += fed


def back(stores: Sequence[KVStore]) -> None:
    """Forget the newest token of each store."""
    for store in stores:
        store.truncate(store.length - 1)


def moved(before: KVStore, after: KVStore, layer: int, start: int, end: int) -> float:
    """How far keys and values of a layer at positions start to end differ: the largest, over the largest number."""
    pairs = list(zip(before.view(layer, end), after.view(layer, end), strict=True))
    return max(largest(a[:, start:] - b[:, start:]) / max(largest(a[:, start:]), 1e-30) for a, b in pairs)


def largest(numbers: Tensor) -> float:
    """The largest absolute value."""
    return float(numbers.double().abs().max())


def tolerance(engine: LLMEngine) -> float:
    """What counts as rounding in the loaded model's format, as a part of the largest number."""
    return ROUNDING if engine.info.dtype == "float32" else HALF_ROUNDING


def is_rounding(engine: LLMEngine, difference: float, numbers: Tensor) -> bool:
    """Whether a difference is no more than rounding beside `numbers`."""
    return difference <= tolerance(engine) * largest(numbers)
