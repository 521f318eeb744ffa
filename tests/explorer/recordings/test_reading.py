"""A recording is read back whole or refused in words, whatever was done to the file."""

from __future__ import annotations

import random

import numpy as np
import pytest

from explorer.recordings import reading
from explorer.recordings.reading import read_recording
from explorer.recordings.refusals import BadRecording
from tests.explorer.recordings.recorded import DAMAGED, GOOD, bomb, changed, set_at


@pytest.mark.parametrize("what", DAMAGED)
def test_a_damaged_file_is_refused_in_words(what: str):
    data, word = DAMAGED[what]
    with pytest.raises(BadRecording, match=word):
        read_recording(data)


def test_whatever_byte_is_changed_the_file_is_read_or_refused_in_words():
    chosen = random.Random(4)
    for _ in range(200):
        at = chosen.randrange(len(GOOD))
        try:
            read_recording(GOOD[:at] + bytes([GOOD[at] ^ chosen.randrange(1, 256)]) + GOOD[at + 1 :])
        except BadRecording:
            continue


def test_a_file_that_unpacks_to_more_than_any_run_is_refused_before_it_fills_the_memory(
    monkeypatch: pytest.MonkeyPatch,
):
    monkeypatch.setattr(reading, "MOST_BYTES", 1_000_000)
    with pytest.raises(BadRecording, match="more than 1 MB"):
        read_recording(bomb())


def test_a_field_that_this_version_does_not_know_is_let_be():
    recording = read_recording(changed(set_at("steps", 0, "from_later", to=[1, 2])))
    assert len(recording.header["steps"]) == 12


def test_each_row_of_attention_read_back_sums_to_one():
    recording = read_recording(GOOD)
    sums = np.concatenate([recording.array(i, "attention").astype(np.float64).sum(-1).ravel() for i in range(12)])
    assert sums.shape == (12 * 30 * 9,)
    assert abs(sums - 1).max() < 14 * 2**-11  # each of at most 14 weights is rounded by half a unit of float16
