"""The guard on steps per second: checked on paper with a clock of our own."""

from __future__ import annotations

import pytest

from explorer.hosting.pace import BURST, Pace


def test_a_burst_is_free_and_then_the_rate_holds():
    pace = Pace(2.0, clock=lambda: 100.0)
    assert [pace.wait_s() for _ in range(BURST + 3)] == pytest.approx([0.0] * BURST + [0.5, 1.0, 1.5])


def test_who_keeps_to_the_rate_never_waits():
    now = [0.0]
    pace = Pace(2.0, clock=lambda: now[0])
    for step in range(50):
        now[0] = step / 2
        assert pace.wait_s() == 0


def test_a_pause_fills_the_burst_again_and_no_more():
    now = [0.0]
    pace = Pace(2.0, clock=lambda: now[0])
    for _ in range(BURST):
        pace.wait_s()
    now[0] = 1000.0
    assert [pace.wait_s() for _ in range(BURST + 1)] == pytest.approx([0.0] * BURST + [0.5])


def test_without_a_rate_nobody_waits():
    pace = Pace(0.0)
    assert {pace.wait_s() for _ in range(100)} == {0.0}
