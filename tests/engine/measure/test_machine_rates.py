"""The machine, measured: numbers that hold together, once per process, and never beside somebody's step."""

from __future__ import annotations

import pytest
import torch

from engine.errors import EngineBusy
from engine.measure import machine_rates
from tests.engine.architectures import tiny_engine
from tests.engine.holding import hold
from tests.engine.quick_machine import measure_quickly

CPU = torch.device("cpu")


@pytest.fixture(autouse=True)
def _quick(monkeypatch):
    measure_quickly(monkeypatch)


@pytest.fixture
def engine():
    made = tiny_engine()
    yield made
    made.close()


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
def test_the_best_run_is_no_slower_than_the_median(dtype):
    rates = machine_rates.measure(CPU, dtype)
    for rate in (rates.gemv_bytes_per_s, rates.gemm_flops_per_s):
        assert rate.best >= rate.median > 0
        assert rate.passes >= 1
    assert rates.dtype == str(dtype).removeprefix("torch.")
    assert rates.swept_bytes == 8 << 20
    assert rates.ridge == rates.gemm_flops_per_s.best / rates.gemv_bytes_per_s.best


def test_what_was_measured_is_not_measured_again_unless_asked(monkeypatch):
    first = machine_rates.measure(CPU, torch.float32)
    assert machine_rates.measure(CPU, torch.float32) is first
    assert machine_rates.known(CPU, torch.float32) is first
    assert machine_rates.known(CPU, torch.bfloat16) is None
    assert machine_rates.measure(CPU, torch.float32, again=True) is not first


def test_a_pass_at_its_best_has_every_run_at_its_best():
    passes = [[1.0, 4.0], [3.0, 2.0], [5.0, 5.0]]
    rate = machine_rates._rate(30, passes)
    assert (rate.best, rate.median, rate.passes) == (30 / (1 + 2), 30 / 5, 3)


def test_a_disturbed_second_measurement_forgets_no_best():
    earlier, later = machine_rates.Rate(20.0, 10.0, 3), machine_rates.Rate(15.0, 14.0, 5)
    assert later.with_earlier(earlier) == machine_rates.Rate(20.0, 14.0, 5)


def test_a_sweep_is_several_times_the_largest_cache(monkeypatch):
    monkeypatch.setattr(machine_rates, "_last_level_cache", lambda: 5 << 20)
    assert machine_rates._sweep_bytes(CPU) == 20 << 20


def test_the_engine_measures_on_its_own_thread_in_the_models_format(engine, monkeypatch):
    import threading

    seen = []
    real = machine_rates._measure
    monkeypatch.setattr(machine_rates, "_measure", lambda *a: seen.append(threading.current_thread().name) or real(*a))
    assert engine.machine is None
    rates = engine.measure_machine().result()
    assert seen == ["loupe-engine"]
    assert rates.dtype == "float32"
    assert engine.machine is rates


def test_it_is_refused_while_somebody_waits_for_the_engine(engine):
    session = engine.create_session()
    session.prefill((3, 4, 5)).result()
    release = hold(engine)
    step = session.step()
    with pytest.raises(EngineBusy, match="2 sessions are using the engine"):
        engine.measure_machine()
    release.set()
    step.result()


def test_it_is_refused_where_somebody_came_between(engine):
    release = hold(engine)
    asked = engine.submit("machine", lambda: iter_measure(engine))
    release2 = hold_later(engine)
    release.set()
    with pytest.raises(EngineBusy):
        asked.result(30)
    release2.set()


def iter_measure(engine):
    yield
    return engine._measure(False)


def hold_later(engine):
    """A second key that is still at work when the measurement's turn comes."""
    import threading

    release = threading.Event()

    def work():
        while not release.is_set():
            yield

    engine.submit("somebody", work)
    return release
