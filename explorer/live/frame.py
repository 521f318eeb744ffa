"""One answer to the browser as bytes: a JSON header, then the arrays it points at.

    [u32 little-endian header length][header, UTF-8][zeros to a multiple of 8][planes]

A plane's offset counts from the start of the planes, not of the frame, so the header can name offsets
before its own length is known. JSON has no NaN: such a number is sent as null, and `pack` refuses one
that slipped through.
"""

from __future__ import annotations

import json
import math
import struct
from collections.abc import Mapping, Sequence
from typing import Literal, TypeAlias, TypedDict

import numpy as np
from numpy.typing import NDArray

Json: TypeAlias = "bool | int | float | str | Sequence[Json] | Mapping[str, Json] | None"
DtypeCode = Literal["f4", "f2", "i4", "u1"]

ALIGNMENT = 8
_DTYPES: dict[DtypeCode, str] = {"f4": "<f4", "f2": "<f2", "i4": "<i4", "u1": "|u1"}


class Plane(TypedDict):
    """Where an array lies, for the browser."""

    dtype: DtypeCode
    shape: list[int]
    offset: int


class Planes:
    """Collects arrays and hands out where each will lie."""

    def __init__(self) -> None:
        self._chunks: list[bytes] = []
        self._size = 0

    def add(self, array: NDArray[np.generic], dtype: DtypeCode) -> dict[str, Json]:
        """Append an array; the description goes into the header."""
        data = np.ascontiguousarray(array, dtype=_DTYPES[dtype]).tobytes()
        offset = self._size
        padded = data + bytes(-len(data) % ALIGNMENT)
        self._chunks.append(padded)
        self._size += len(padded)
        return {"dtype": dtype, "shape": [int(n) for n in array.shape], "offset": offset}

    def tobytes(self) -> bytes:
        """All arrays, each at a multiple of 8."""
        return b"".join(self._chunks)


def number(value: float | None) -> float | None:
    """A plain float for JSON; None for what JSON cannot say (NaN, infinity)."""
    if value is None:
        return None
    plain = float(value)
    return plain if math.isfinite(plain) else None


def pack(header: Mapping[str, Json], planes: Planes) -> bytes:
    """Header and planes as one frame. Raises on numpy scalars and on NaN: both would break the page silently."""
    text = json.dumps(header, allow_nan=False, ensure_ascii=False, separators=(",", ":")).encode()
    head = struct.pack("<I", len(text)) + text
    return head + bytes(-len(head) % ALIGNMENT) + planes.tobytes()


def unpack(frame: bytes) -> tuple[dict[str, Json], bytes]:
    """The header and the bytes of the planes."""
    (length,) = struct.unpack_from("<I", frame)
    end = 4 + length
    header: dict[str, Json] = json.loads(frame[4:end])
    return header, frame[end + (-end % ALIGNMENT) :]


def read_plane(planes: bytes, plane: Plane) -> NDArray[np.generic]:
    """The array a description points at."""
    count = math.prod(plane["shape"])
    array = np.frombuffer(planes, dtype=_DTYPES[plane["dtype"]], count=count, offset=plane["offset"])
    return array.reshape(plane["shape"])
