"""Bytes that attention over a prompt moves and holds, with and without tiles, per head and layer: by formula alone."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from engine.costs.attention_traffic import input_output_bytes, naive_bytes, square_share, tiled_bytes
from explorer.say import words_beside

say = words_beside(__file__)

LENGTHS = tuple(2**power for power in range(4, 18))  # 16 to 131,072 tokens
SCORE_BYTES = 4  # a tile of scores stays in float32 on the chip, whatever the tensors are


@dataclass(frozen=True, slots=True)
class Setting:
    """What the bytes depend on beside the length: head width, bytes per number, and a tile's queries and keys."""

    head_dim: int
    dtype_bytes: int
    query_rows: int
    tile_keys: int

    @property
    def words(self) -> str:
        """The inputs, for a hover."""
        return say(
            "traffic.inputs",
            head_dim=self.head_dim,
            dtype_bytes=self.dtype_bytes,
            query_rows=self.query_rows,
            tile_keys=self.tile_keys,
        )


@dataclass(frozen=True, slots=True)
class Traffic:
    """Bytes of one head and layer for N tokens.

    naive       moved when scores and weights go through memory
    no_reuse    moved in tiles, keys and values read again for every tile of queries
    ideal       moved when query, key, value and output are each moved once
    matrix      held: the square of scores
    tile        held: one tile of scores
    decode_row  held in a decode step: one row of scores
    share       of the naive traffic, what the squares are
    """

    length: int
    naive: int
    no_reuse: int
    ideal: int
    matrix: int
    tile: int
    decode_row: int
    share: float


def traffic(length: int, setting: Setting) -> Traffic:
    """All of it at one length."""
    d, b = setting.head_dim, setting.dtype_bytes
    rows, columns = min(setting.query_rows, length), min(setting.tile_keys, length)
    return Traffic(
        length=length,
        naive=naive_bytes(length, d, b),
        no_reuse=tiled_bytes(length, d, query_rows=setting.query_rows, dtype_bytes=b),
        ideal=input_output_bytes(length, d, b),
        matrix=length * length * b,
        tile=rows * columns * SCORE_BYTES,
        decode_row=length * b,
        share=square_share(length, d),
    )


def sweep(setting: Setting, lengths: Sequence[int] = LENGTHS) -> list[Traffic]:
    """The curve over lengths."""
    return [traffic(length, setting) for length in lengths]


def rows(swept: Sequence[Traffic]) -> list[dict[str, object]]:
    """The curve as a table; all bytes per head and layer."""
    return [
        {
            "N": row.length,
            say("traffic.unfused"): row.naive,
            say("traffic.tiled"): row.no_reuse,
            say("traffic.once"): row.ideal,
            say("traffic.square"): row.matrix,
            say("traffic.tile"): row.tile,
            say("traffic.decode"): row.decode_row,
            say("traffic.share"): row.share,
        }
        for row in swept
    ]
