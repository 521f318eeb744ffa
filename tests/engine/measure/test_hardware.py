"""The table of published speeds: complete, sourced, and consistent with ratios that are known by heart."""

from __future__ import annotations

import pytest

from engine.costs.step_time import critical_batch, general_s, memory_bound_s, ridge
from engine.measure.hardware import HARDWARE
from engine.shapes.book import SCALING_BOOK_30B as BOOK


@pytest.mark.parametrize("name", HARDWARE)
def test_every_device_names_its_source_and_its_bandwidth(name):
    device = HARDWARE[name]
    assert device.name == name
    assert len(device.source) > 15
    assert 10e9 < device.bandwidth < 1e13
    assert all(1e12 < rate < 1e16 for rate in device.peak.values())


@pytest.mark.parametrize(
    ("name", "tokens"),
    [
        ("H100 SXM", 295.3),
        ("H100 PCIe", 378.0),
        ("H200", 206.1),
        ("B200", 281.25),
        ("A100 80GB SXM", 153.0),
        ("TPU v5e", 240.2),
    ],
)
def test_critical_batch_in_bf16(name, tokens):
    device = HARDWARE[name]
    assert critical_batch(device.peak["bf16"], device.bandwidth) == pytest.approx(tokens, abs=0.06)
    assert ridge(device.peak["bf16"], device.bandwidth) == critical_batch(device.peak["bf16"], device.bandwidth)


def test_a_format_without_a_rate_is_computed_in_a_wider_one():
    assert HARDWARE["H100 SXM"].best_peak("fp8") == 1978.9e12
    assert HARDWARE["A100 80GB SXM"].best_peak("fp8") == 312e12
    assert HARDWARE["A100 80GB SXM"].best_peak("q4_0") == 312e12
    assert HARDWARE["Apple M4 Max"].best_peak("bf16") == 34e12
    assert HARDWARE["H100 SXM"].best_peak("fp32") is None
    assert HARDWARE["Laptop CPU, DDR5-5600"].best_peak("bf16") is None


def test_the_books_example_takes_two_and_a_half_and_twenty_one_milliseconds():
    rates = {"bandwidth": BOOK.devices * BOOK.bandwidth, "peak": BOOK.devices * BOOK.peak}
    small, large = BOOK.batches
    assert memory_bound_s(
        batch=small, kv_bytes=BOOK.kv_bytes, weights=BOOK.weights, bandwidth=rates["bandwidth"]
    ) == pytest.approx(2.536e-3, rel=1e-3)
    assert general_s(
        batch=large, kv_bytes=BOOK.kv_bytes, weights=BOOK.weights, parameters=BOOK.parameters, **rates
    ) == pytest.approx(20.86e-3, rel=1e-3)
    assert large * BOOK.kv_bytes + BOOK.weights < BOOK.devices * BOOK.memory  # it fits
    assert BOOK.bandwidth == HARDWARE["TPU v5e"].bandwidth
