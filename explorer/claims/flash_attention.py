"""Claims about attention in tiles."""

from __future__ import annotations

import numpy as np

from engine.costs.attention_traffic import input_output_bytes, score_bytes, square_share
from engine.tiles import merge, partial_of
from explorer.claims.claim import Claim, Number, See, Topic, device, fixed, shape
from explorer.claims.sources import ARITHMETIC, FLASH

TILES = See("flash-attention", {"n": "4096", "d": "128"})
MIB = 2**20


def _square(length: int, dtype_bytes: int) -> tuple[Number, ...]:
    return (Number("scores", length * length * dtype_bytes / MIB, "MiB"),)


def _trips(length: int, dtype_bytes: int, model: str, gpu: str) -> tuple[Number, ...]:
    moved = score_bytes(length, dtype_bytes)
    heads = shape(model).num_layers * shape(model).num_heads
    return (
        Number("per layer and head", moved / MIB, "MiB"),
        Number(f"all heads of {model}", heads * moved / 1e9, "GB"),
        Number(f"at the bandwidth of {gpu}", 1e3 * heads * moved / device(gpu).bandwidth, "ms"),
    )


def _two_tiles(scores: tuple[float, ...], values: tuple[float, ...]) -> tuple[Number, ...]:
    """One score a tile; the plain softmax beside it."""
    states = [partial_of(np.array([s]), np.array([[v]])) for s, v in zip(scores, values, strict=True)]
    both = merge(states[0], states[1])
    weights = np.exp(np.array(scores) - max(scores))
    return (
        Number("tile by tile", float(both.divided[0])),
        Number("at once", float(weights @ np.array(values) / weights.sum())),
        Number("the first tile is scaled by", float(np.exp(states[0].largest - both.largest))),
    )


CLAIMS = (
    Claim(
        id="scores-go-through-memory", verdict="conditional", source=FLASH, see=TILES,
        said="Plain attention writes an N by N matrix of attention scores to memory.",
        because="Over a prompt, with separate kernels. A decode step has one row of it.",
        formula="N·N·b; N·b", inputs=fixed(length=4096, dtype_bytes=2),
        compute=lambda length, dtype_bytes: (
            *_square(length, dtype_bytes),
            Number("a decode step’s row", length * dtype_bytes / 1024, "KiB"),
        ),
    ),
    Claim(
        id="four-trips-128-mebibytes", verdict="exact", source=ARITHMETIC, see=TILES,
        said="At 4,096 tokens, attention scores and weights make 128 MiB of traffic.",
        because="Per layer and head; for all heads of an 8B model it is 137 GB.",
        formula="4·N²·b",
        inputs=fixed(length=4096, dtype_bytes=2, model="Llama 3.1 8B", gpu="H100 SXM"), compute=_trips,
    ),
    Claim(
        id="ninety-nine-percent-scaffolding", verdict="conditional", source=ARITHMETIC, see=TILES,
        said="99% of plain attention’s memory traffic comes only from the way it is computed.",
        because="If only the output counts as needed. With query, key and value, it is 97%.",
        formula="4·N²·b / (4·N²·b + 4·N·h·b)", inputs=fixed(length=4096, head_dim=128, dtype_bytes=2),
        compute=lambda length, head_dim, dtype_bytes: (
            Number("all traffic counted", square_share(length, head_dim)),
            Number(
                "output alone beside it",
                score_bytes(length, dtype_bytes)
                / (score_bytes(length, dtype_bytes) + input_output_bytes(length, head_dim, dtype_bytes) / 4),
            ),
        ),
    ),
    Claim(
        id="running-maximum-and-sum", verdict="exact", source=FLASH, measure="tiles",
        see=See("flash-attention", {"size": "1"}),
        said="A running maximum, a running sum and a rescaled output are enough to compute softmax tile by tile.",
        because="The lab shows it on the keys of your own run. One division is left for the end.",
        formula="m = max(m₁, m₂); l = l₁·e^(m₁−m) + l₂·e^(m₂−m); o likewise; o / l",
        inputs=fixed(scores=(0.0, float(np.log(2))), values=(0.0, 3.0)), compute=_two_tiles,
    ),
    Claim(
        id="tiles-are-exact", verdict="exact", source=FLASH, measure="tiles", see=See("flash-attention", {"size": "1"}),
        said="FlashAttention gives the same result, except for the last digits.",
        because="It is the same number in exact arithmetic, rounded in another order, so the bits differ.",
        formula="largest difference from float64", inputs=fixed(scores=(1000.0, 0.0), values=(5.0, 7.0)),
        compute=_two_tiles,
    ),
)  # fmt: skip

TOPIC = Topic("tiles", "FlashAttention, tile by tile", CLAIMS)
