"""The host's page: right sums, nobody's text, and no way in without the key."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import astuple, replace
from pathlib import Path

import pytest
from streamlit.testing.v1 import AppTest

from engine.serving.counters import DecodeForward, add_up
from explorer.engines.pool import EnginePool
from explorer.hosting import runtime
from explorer.hosting.class_now import BINS, class_now, percentile
from explorer.hosting.leases import Lease, Limits, Registry
from explorer.hosting.limits import Hosting
from explorer.hosting.runtime import Runtime
from explorer.pages import class_page
from tests.explorer.hosting.test_leases import Clock
from tests.explorer.page_client import Page, prefilled, reap, settle
from tests.explorer.pages.test_app import App

HOSTILE = 'a<b & "c" </script><img src=x onerror=alert(1)> $5 and $9 _x_ [y](z) `c` :red[no]'

KEY = "correct-horse-battery"


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def classroom(pool: EnginePool, clock: Clock) -> Runtime:
    hosting = Hosting(mode="hosted", max_sessions=30, host_key=KEY)
    return Runtime(pool, Registry(Limits(grace_s=60), clock), hosting)


@pytest.mark.parametrize(
    ("values", "percent", "expected"),
    [([], 95, 0), ([7], 95, 7), (range(1, 101), 95, 95), (range(1, 21), 95, 19), ([3, 1, 2], 50, 2)],
)
def test_percentiles_as_on_paper(values, percent, expected):
    assert percentile(list(values), percent) == expected


def test_the_last_minute_and_the_last_five(classroom, monkeypatch):
    forwards = (
        DecodeForward(1_000_000.0, (10.0, 10.0)),
        DecodeForward(1_295_000.0, (20.0,) * 4),
        DecodeForward(1_296_000.0, (40.0,) * 8),
    )
    counters = replace(add_up([]), at_ms=1_299_000.0, recent=forwards, decode_tokens=14, prefills=2)
    monkeypatch.setattr(Runtime, "counters", lambda _: counters)
    now = class_now(classroom)
    assert (now.batch_size, now.wait_p95_s, now.tokens_per_s) == (6, 0.04, pytest.approx(12 / 60))
    assert len(now.batch_sizes) == BINS
    assert (now.batch_sizes[0], now.batch_sizes[-1]) == (2, 6)
    assert now.waits_s[-1] == pytest.approx((4 * 0.02 + 8 * 0.04) / 12)
    assert set(now.batch_sizes[1:-1]) == {0}
    assert now.tokens == 16


def test_who_is_there_in_one_line(classroom, clock):
    gone, _ = prefilled(Page(classroom)), prefilled(Page(classroom))
    classroom.tabs.release(Lease(gone.tab.sid, gone.owner))
    reap(classroom)
    clock.now = 60
    reap(classroom)
    settle(gone.tab.workspace.engine)
    line = class_page.headline(class_now(classroom), classroom.hosting.max_sessions)
    assert line == "1 of 30 places taken · 0 in line · 1 without a cache, rebuilt when used · engine: well"


def test_nothing_of_a_student_is_in_it(classroom):
    page = prefilled(Page(classroom), "my secret")
    assert "secret" not in repr(astuple(class_now(classroom)))
    assert page.tab.sid not in repr(astuple(class_now(classroom)))


def test_only_the_very_key_opens():
    assert class_page.is_key(KEY, KEY)
    for wrong in ("", KEY[:-1], KEY + " ", KEY.upper(), "ключ", "\ud83d"):
        assert not class_page.is_key(wrong, KEY)
    assert not class_page.is_key("", "")


# --- as Streamlit runs it -------------------------------------------------------------------------------------


@pytest.fixture
def hosted(tiny_folder: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[pytest.MonkeyPatch]:
    runtime.close()
    monkeypatch.setenv("LOUPE_MODEL", str(tiny_folder))
    monkeypatch.setenv("LOUPE_MODE", "hosted")
    monkeypatch.setattr(class_page, "WRONG_KEY_S", 0)
    yield monkeypatch
    runtime.close()


PAGE = """
from explorer.pages import class_page
class_page.page()
"""


def test_the_class_is_shown_for_the_key_alone(hosted):
    hosted.setenv("LOUPE_HOST_KEY", KEY)
    prefilled(App().page(), "my secret")
    host = AppTest.from_string(PAGE, default_timeout=60).run()
    assert [element.value for element in host.subheader] == ["For the host of this class"]
    host.text_input[0].input("wrong-horse-battery")
    host.button[0].click().run()
    assert "not the key" in host.text[0].value
    assert not host.metric
    host.text_input[0].input(KEY)
    host.button[0].click().run()
    assert not host.exception
    assert [element.label for element in host.metric][:2] == ["Tokens generated", "Tokens per second"]
    assert host.metric[0].value == "1"
    assert "secret" not in str(host.main)
    assert KEY not in str(host.main)


def test_a_shared_text_is_shown_as_text_and_gone_when_it_is_taken_back(hosted):
    hosted.setenv("LOUPE_HOST_KEY", KEY)
    student = prefilled(App().page(), HOSTILE)
    host = AppTest.from_string(PAGE, default_timeout=60).run()
    host.text_input[0].input(KEY)
    host.button[0].click().run()
    assert "Nobody shares a text just now" in " ".join(str(one.value) for one in host.caption)
    student.ok("share", on=True)
    host.run()
    assert HOSTILE in [one.value for one in host.text]
    assert HOSTILE not in "".join(str(one.value) for kind in ("markdown", "caption", "html") for one in host.get(kind))
    student.ok("share", on=False)
    host.run()
    assert not host.text


def test_without_a_key_there_is_no_such_page(hosted):
    host = AppTest.from_string(PAGE, default_timeout=60).run()
    assert not host.text_input and not host.subheader and not host.metric


def test_on_ones_own_machine_there_is_no_such_page(hosted):
    hosted.setenv("LOUPE_HOST_KEY", KEY)
    hosted.setenv("LOUPE_MODE", "own")
    host = AppTest.from_string(PAGE, default_timeout=60).run()
    assert not host.text_input and not host.subheader and not host.metric


def test_there_is_a_class_page_only_with_a_key_and_a_class():
    assert not Hosting(mode="hosted").has_class_page
    assert not Hosting(host_key=KEY).has_class_page
    assert Hosting(mode="hosted", host_key=KEY).has_class_page
