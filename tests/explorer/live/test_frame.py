"""The byte format: what is packed is what is read, and nothing that breaks the page gets in."""

from __future__ import annotations

import json
import math
import struct

import numpy as np
import pytest

from explorer.live.frame import Planes, number, pack, read_plane, unpack


def test_a_frame_reads_back_as_it_was_packed():
    planes = Planes()
    halves = np.array([[0.5, 0.25], [1.0, 0.0]], dtype=np.float32)
    header = {
        "text": "a “fox” 🦊",
        "a": planes.add(np.arange(3, dtype=np.int32), "i4"),
        "b": planes.add(np.array([True, False, True]), "u1"),
        "c": planes.add(halves, "f2"),
    }
    read, body = unpack(pack(header, planes))
    assert read["text"] == "a “fox” 🦊"
    assert read_plane(body, read["a"]).tolist() == [0, 1, 2]
    assert read_plane(body, read["b"]).tolist() == [1, 0, 1]
    assert read_plane(body, read["c"]).tolist() == halves.tolist()


def test_the_layout_is_length_header_padding_planes():
    planes = Planes()
    descriptor = planes.add(np.array([7.0], dtype=np.float32), "f4")
    frame = pack({"p": descriptor}, planes)
    (length,) = struct.unpack_from("<I", frame)
    assert json.loads(frame[4 : 4 + length]) == {"p": {"dtype": "f4", "shape": [1], "offset": 0}}
    start = math.ceil((4 + length) / 8) * 8
    assert struct.unpack_from("<f", frame, start) == (7.0,)


@pytest.mark.parametrize("text", ["", "a", "ab", "abcdefg", "äöü"])
def test_every_plane_lies_at_a_multiple_of_8(text):
    planes = Planes()
    first = planes.add(np.zeros(3, dtype=np.uint8), "u1")
    second = planes.add(np.zeros(5, dtype=np.float32), "f4")
    frame = pack({"t": text, "a": first, "b": second}, planes)
    (length,) = struct.unpack_from("<I", frame)
    start = (4 + length + 7) // 8 * 8
    assert second["offset"] == 8
    assert (len(frame) - start) == 8 + 24


def test_offsets_do_not_depend_on_the_header():
    offsets = []
    for text in ("", "x" * 1000):
        planes = Planes()
        planes.add(np.zeros(3), "f4")
        header, body = unpack(pack({"t": text, "p": planes.add(np.ones(2), "f4")}, planes))
        offsets.append(header["p"]["offset"])
        assert read_plane(body, header["p"]).tolist() == [1.0, 1.0]
    assert offsets == [16, 16]


def test_an_array_in_another_order_is_sent_row_by_row():
    planes = Planes()
    transposed = np.arange(6, dtype=np.float32).reshape(2, 3).T
    header, body = unpack(pack({"p": planes.add(transposed, "f4")}, planes))
    assert read_plane(body, header["p"]).tolist() == [[0.0, 3.0], [1.0, 4.0], [2.0, 5.0]]


def test_nan_is_refused_by_json_and_sent_as_null():
    with pytest.raises(ValueError, match="not JSON compliant"):
        pack({"x": float("nan")}, Planes())
    assert unpack(pack({"x": number(float("nan")), "y": number(-math.inf)}, Planes()))[0] == {"x": None, "y": None}


@pytest.mark.parametrize("scalar", [np.float32(1), np.int64(1), np.bool_(True)])
def test_a_numpy_scalar_is_refused(scalar):
    with pytest.raises(TypeError):
        pack({"x": scalar}, Planes())


def test_number_gives_plain_floats():
    assert type(number(np.float32(0.5))) is float  # type: ignore[arg-type]
    assert number(None) is None
    assert number(3) == 3.0
