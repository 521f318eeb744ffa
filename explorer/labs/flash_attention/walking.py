"""A walk over one head's keys as the page shows it: the frame for the picture, the rows of its table, its last word."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from engine.tiles import HeadInputs, Tile, exact, two_passes, walk
from explorer.live.frame import Json, Planes, number, pack
from explorer.say import words_beside

say = words_beside(__file__)

MOST_TILES = 512  # beyond, each tile is narrower than a pixel and the outputs of all of them would be megabytes


@dataclass(frozen=True, slots=True, eq=False)
class Walk:
    """One head walked in tiles, beside the exact output.

    off  (T) largest difference between o / l after each tile and the exact output over all keys
    """

    inputs: HeadInputs
    tile_size: int
    tiles: tuple[Tile, ...]
    exact: NDArray[np.float64]
    off: tuple[float, ...]
    two_passes_off: float

    @property
    def rescaled(self) -> int:
        """Tiles that scaled down what was summed before them."""
        return sum(tile.rescale < 1 for tile in self.tiles)


def smallest_tile(num_keys: int) -> int:
    """The smallest tile that makes no more tiles than can be shown."""
    return max(1, -(-num_keys // MOST_TILES))


def usual_tile(num_keys: int) -> int:
    """A size that makes about eight tiles, no wider than a kernel's."""
    return max(smallest_tile(num_keys), min(64, -(-num_keys // 8)))


def walked(inputs: HeadInputs, tile_size: int) -> Walk:
    """Walk `inputs`, and hold every state against the float64 output."""
    tiles, right = walk(inputs, tile_size), exact(inputs)
    off = tuple(float(np.abs(tile.after.divided - right).max()) for tile in tiles)
    return Walk(inputs, tile_size, tiles, right, off, float(np.abs(two_passes(inputs) - right).max()))


def frame_of(done: Walk, tokens: Sequence[Json], *, key: str, tile: int) -> bytes:
    """The walk for the browser. `key` names it: another one starts at `tile` again, the same stays where it is."""
    planes = Planes()

    def plane(values: Sequence[float]) -> Json:
        return planes.add(np.array(values, np.float32), "f4")

    header: dict[str, Json] = {
        "key": key,
        "tile": tile,
        "tiles": len(done.tiles),
        "size": done.tile_size,
        "keys": len(done.inputs.keys),
        "begin": number(done.inputs.sink),
        "tokens": tokens,
        "off": list(done.off),
        "scores": planes.add(np.concatenate([one.scores for one in done.tiles]), "f4"),
        "m": plane([one.after.largest for one in done.tiles]),
        "l": plane([one.after.total for one in done.tiles]),
        "rescale": plane([one.rescale for one in done.tiles]),
        "out": planes.add(np.stack([one.after.divided for one in done.tiles]), "f4"),
        "exact": planes.add(done.exact, "f4"),
    }
    return pack(header, planes)


def rows(done: Walk) -> list[dict[str, object]]:
    """One row per tile, for the table and the CSV."""
    return [
        {
            "tile": place,
            "keys": say("walking.keys", start=tile.start, end=tile.end - 1),
            say("walking.largest"): float(tile.scores.max()),
            "m": tile.after.largest,
            say("walking.earlier"): tile.rescale,
            "l": tile.after.total,
            say("walking.furthest"): off,
        }
        for place, (tile, off) in enumerate(zip(done.tiles, done.off, strict=True), 1)
    ]
