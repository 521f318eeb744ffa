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


@pytest.mark.parametrize(
    ("name", "fp8", "int8"),
    [
        ("H100 SXM", 1978.9e12, 1978.9e12),
        ("H200", 1978.9e12, 1978.9e12),
        ("H100 PCIe", 1513e12, 1513e12),
        ("B200", 4500e12, 4500e12),
        ("RTX 4090", 330.3e12, 660.6e12),
    ],
)
def test_rates_of_one_byte_formats_as_nvidia_publishes_them(name, fp8, int8):
    assert (HARDWARE[name].peak["fp8"], HARDWARE[name].peak["int8"]) == (fp8, int8)


def test_int8_turns_where_bf16_does_on_a_device_that_multiplies_it_twice_as_fast():
    """Half the bytes at twice the rate: the same batch, 295 on an H100 and 153 on an A100."""
    for name in ("H100 SXM", "H100 PCIe", "H200", "A100 80GB SXM"):
        device = HARDWARE[name]
        bf16 = critical_batch(device.peak["bf16"], device.bandwidth)
        assert critical_batch(device.peak["int8"], device.bandwidth, 1.0) == pytest.approx(bf16, rel=1e-3)


def test_eight_b200_hold_what_their_data_sheet_says():
    assert 8 * HARDWARE["B200"].memory == 1440e9
    assert 8 * HARDWARE["B200"].bandwidth == 64e12


def test_a_format_without_a_rate_is_computed_in_a_wider_one():
    assert HARDWARE["H100 SXM"].best_peak("fp8") == 1978.9e12
    assert HARDWARE["A100 80GB SXM"].best_peak("fp8") == 312e12
    assert HARDWARE["A100 80GB SXM"].best_peak("q4_0") == 312e12
    assert HARDWARE["Apple M4 Max"].best_peak("bf16") == 34e12
    assert HARDWARE["TPU v5e"].best_peak("fp8") == 197e12
    assert HARDWARE["TPU v5e"].best_peak("fp32") is None
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
