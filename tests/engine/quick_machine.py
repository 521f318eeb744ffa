"""Measuring the machine in a test: sweeps that are over at once, and nothing remembered from other tests."""

from __future__ import annotations

import pytest

from engine.measure import machine_rates


def measure_quickly(monkeypatch: pytest.MonkeyPatch, sides: tuple[int, ...] = (64, 128)) -> None:
    """Small sweeps and products of these sides, for as long as `monkeypatch` lasts."""
    monkeypatch.setattr(machine_rates, "_known", {})
    monkeypatch.setattr(machine_rates, "SWEEP_BYTES", {"cpu": 8 << 20})
    monkeypatch.setattr(machine_rates, "MATRIX_BYTES", {"cpu": 4 << 20})
    monkeypatch.setattr(machine_rates, "_last_level_cache", lambda: 0)
    monkeypatch.setattr(machine_rates, "SWEEP_S", 0.01)
    monkeypatch.setattr(machine_rates, "MULTIPLY_S", 0.01)
    monkeypatch.setattr(machine_rates, "SIDES", sides)
