"""Counting by hand: three forwards, and what a page reads of them."""

from __future__ import annotations

from math import inf

from engine.serving.counters import RECENT, WAIT_BOUNDS_MS, DecodeForward, EngineCounters, EngineHealth, Meter


def read(meter: Meter) -> EngineCounters:
    return meter.read(0.0, sessions=1, waiting=0, kv_live_bytes=0, kv_reserved_bytes=0, prefix_bytes=0)


def test_forwards_add_up_to_tokens_waits_and_batch_sizes() -> None:
    meter = Meter()
    meter.forward(10.0, [4.0, 2.0])
    meter.forward(20.0, [1.0])
    meter.forward(30.0, [0.0, 3.0])
    seen = read(meter)
    assert (seen.decode_tokens, seen.wait_ms, seen.batch_sizes) == (5, 10.0, ((1, 1), (2, 2)))
    assert seen.recent[0] == DecodeForward(at_ms=10.0, waits_ms=(4.0, 2.0))


def test_waits_are_counted_at_or_below_each_bound() -> None:
    meter = Meter()
    meter.forward(10.0, [0.0, 5.0, 5.1, 60.0, 9_000.0])
    waits = dict(read(meter).waits)
    assert (waits[5.0], waits[20.0], waits[50.0], waits[100.0], waits[5_000.0], waits[inf]) == (2, 3, 3, 4, 4, 5)
    assert tuple(waits) == (*WAIT_BOUNDS_MS, inf)


def test_a_forward_from_which_nobody_got_a_token_is_none() -> None:
    meter = Meter()
    meter.forward(10.0, [])
    assert (read(meter).batch_sizes, read(meter).recent) == ((), ())


def test_totals_add_up_under_the_names_that_the_counters_give_them() -> None:
    meter = Meter()
    meter.add(evictions=2, failures=1)
    meter.add(evictions=1, prefills=1, reused_tokens=40, rebuilt_tokens=41)
    seen = read(meter)
    assert (seen.evictions, seen.failures, seen.prefills, seen.reused_tokens, seen.rebuilt_tokens) == (3, 1, 1, 40, 41)


def test_the_latest_forwards_are_kept_and_no_more() -> None:
    meter = Meter()
    for i in range(RECENT + 5):
        meter.forward(float(i), [0.0])
    assert [f.at_ms for f in read(meter).recent] == [float(i) for i in range(5, RECENT + 5)]
    assert read(meter).batch_sizes == ((1, RECENT + 5),)


def test_an_engine_is_stuck_when_its_thread_is_gone_or_its_turn_takes_too_long() -> None:
    assert not EngineHealth(alive=True, heartbeat_age_s=5.0, busy=True, waiting=3).is_stuck(after_s=20)
    assert EngineHealth(alive=True, heartbeat_age_s=21.0, busy=True, waiting=3).is_stuck(after_s=20)
    assert EngineHealth(alive=False, heartbeat_age_s=0.0, busy=False, waiting=0).is_stuck(after_s=20)
