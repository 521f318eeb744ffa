"""What is kept of recent steps stays within its budget, and never speaks for a step that was cut."""

from __future__ import annotations

import torch

from engine.forward.capture import Capture, CaptureRing
from engine.forward.forward_pass import LayerQuery

ONE = 100 * 4 + 2 * 8 * 4  # bytes of 100 logits and two heads of width 8, float32


def capture(value: float = 0.0) -> Capture:
    query = LayerQuery(torch.zeros(2, 8), 1.0, None, None, None)
    return Capture(torch.full((100,), value), {0: query})


def test_bytes_are_those_of_logits_and_queries():
    assert capture().num_bytes == ONE


def test_the_oldest_is_dropped_first_once_the_budget_is_passed():
    ring = CaptureRing(2 * ONE)
    for step in range(4):
        ring.put(step, capture())
    assert [ring.get(step) is not None for step in range(4)] == [False, False, True, True]
    assert ring.num_bytes == 2 * ONE


def test_the_latest_stays_even_beyond_the_budget():
    ring = CaptureRing(1)
    ring.put(0, capture())
    ring.put(1, capture())
    assert ring.get(0) is None
    assert ring.get(1) is not None


def test_a_step_made_again_replaces_its_capture_and_is_counted_once():
    ring = CaptureRing(10 * ONE)
    ring.put(0, capture(1.0))
    ring.put(0, capture(2.0))
    found = ring.get(0)
    assert found is not None
    assert float(found.logits[0]) == 2.0
    assert ring.num_bytes == ONE


def test_captures_behind_a_cut_are_gone():
    ring = CaptureRing(10 * ONE)
    for step in range(3):
        ring.put(step, capture())
    ring.truncate(1)
    assert [ring.get(step) is not None for step in range(3)] == [True, False, False]
    assert ring.num_bytes == ONE
