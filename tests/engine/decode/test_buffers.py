"""Rows that are used again: never two at once, and never one that somebody still reads."""

from __future__ import annotations

from dataclasses import fields, is_dataclass
from typing import Any

import numpy as np
import torch

from engine.config import SamplingParams
from engine.decode.buffers import SHORTEST, empty, reused
from engine.decode.sampling import run_stages, sample
from engine.records import SHOWN

VOCAB = 49_152
EVERYTHING = SamplingParams(temperature=0.8, top_k=6_000, top_p=0.99, min_p=0.0001, repetition_penalty=1.3)


def logits_of(seed: int) -> torch.Tensor:
    return torch.from_numpy(np.random.default_rng(seed).normal(2, 2, VOCAB).astype(np.float32))


def arrays_in(value: Any) -> list[np.ndarray[Any, Any]]:
    if isinstance(value, np.ndarray):
        return [value]
    if is_dataclass(value):
        return [array for field in fields(value) for array in arrays_in(getattr(value, field.name))]
    return [array for one in value for array in arrays_in(one)] if isinstance(value, tuple) else []


def test_rows_in_use_never_share_memory_and_are_used_again_afterwards() -> None:
    seen: set[int] = set()
    for _ in range(4):
        with reused():
            held = [empty(SHORTEST + size) for size in (1, 1, 2, 3)]
            assert not any(np.shares_memory(a, b) for i, a in enumerate(held) for b in held[:i])
            seen |= {array.__array_interface__["data"][0] for array in held}
    assert len(seen) == 4
    assert not np.shares_memory(empty(SHORTEST + 1), held[0])  # outside, each is fresh


def test_what_a_step_leaves_is_not_touched_by_the_next_and_is_what_fresh_arrays_give() -> None:
    found = [sample(logits_of(seed), range(50), EVERYTHING, seed=seed, step=0) for seed in range(3)]
    before = [[array.copy() for array in arrays_in(one)] for one in found]
    again = [sample(logits_of(seed), range(50), EVERYTHING, seed=seed, step=0) for seed in range(3)]
    for seed, (one, kept, repeated) in enumerate(zip(found, before, again, strict=True)):
        assert all(map(np.array_equal, arrays_in(one), kept))
        assert all(map(np.array_equal, arrays_in(repeated), kept))
        assert one.draw == repeated.draw
        for stage, (_, _, scores) in zip(one.stages, run_stages(logits_of(seed), range(50), EVERYTHING), strict=True):
            expected = scores.double().softmax(-1)[one.candidates.ids[:SHOWN].tolist()]
            np.testing.assert_allclose(stage.probs, expected.numpy(), rtol=1e-12)
