"""Work begun on a lab's page: watched, stopped, kept for the inputs it belongs to."""

from __future__ import annotations

import threading
from concurrent.futures import Future

import pytest
from streamlit.testing.v1 import AppTest

from explorer.labs import progress
from explorer.labs.progress import Job, Jobs, Stopped


def quick_page() -> None:
    from concurrent.futures import Future

    import streamlit as st

    from engine.errors import LoupeError
    from explorer.labs import progress

    inputs = st.number_input("n", value=2)

    def begin(report: progress.TaskProgress) -> Future[int]:
        done: Future[int] = Future()
        if inputs < 0:
            raise LoupeError(f"n must be 0 or more, got {inputs}.")
        done.set_result(10 * inputs)
        return done

    st.json({"result": progress.task("square", "Measure", begin, inputs=inputs)})


def result(page: AppTest) -> object:
    import json

    return json.loads(page.json[0].value)["result"]


def test_nothing_runs_before_it_is_asked_for():
    page = AppTest.from_function(quick_page).run()
    assert result(page) is None
    assert [button.label for button in page.button] == ["Measure"]


def test_a_result_stays_over_reruns_and_goes_with_its_inputs():
    page = AppTest.from_function(quick_page).run()
    page.button[0].click().run()
    assert result(page) == 20
    page.run()
    assert result(page) == 20
    page.number_input[0].set_value(3).run()
    assert result(page) is None, "this result was for other inputs"
    page.button[0].click().run()
    assert result(page) == 30


def test_work_that_cannot_begin_says_why():
    page = AppTest.from_function(quick_page).run()
    page.number_input[0].set_value(-1).run()
    page.button[0].click().run()
    assert not page.exception
    assert [text.value for text in page.text] == ["n must be 0 or more, got -1."]


def slow_page() -> None:
    import streamlit as st

    from explorer.labs import progress
    from tests.explorer.labs.test_progress import WORK

    st.json(
        {"result": progress.task("slow", "Measure", WORK.begin, meanwhile=lambda: st.markdown("what there is so far"))}
    )


class Work:
    """A thread that reports until it is told to finish."""

    def __init__(self) -> None:
        self.free = threading.Event()
        self.ended: list[str] = []
        self.done: Future[int] = Future()

    def begin(self, report: progress.TaskProgress) -> Future[int]:
        done = self.done = Future()

        def run() -> None:
            try:
                for i in range(10_000):
                    report(min(i, 3), 4, "counting")
                    if self.free.wait(0.01):
                        break
                done.set_result(7)
            except Stopped as error:
                self.ended.append(str(error))
                done.set_exception(error)

        threading.Thread(target=run, daemon=True).start()
        return done


WORK = Work()


def test_work_under_way_shows_how_far_it_is_and_can_be_stopped():
    page = AppTest.from_function(slow_page).run()
    page.button[0].click().run()
    assert result(page) is None
    (bar,) = page.get("progress")
    assert bar.proto.text == "counting 3 of 4"
    assert [shown.value for shown in page.markdown] == ["what there is so far"]
    stop = next(button for button in page.button if button.label == "Stop")
    stop.click().run()
    WORK.done.exception(timeout=10)
    page.run()
    assert "Stopped at 3 of 4." in [text.value for text in page.text]
    assert WORK.ended == ["Stopped at 3 of 4."]
    assert not page.markdown, "nothing is under way any more"


def test_a_tab_that_goes_away_ends_its_work():
    jobs, job = Jobs(), Job(None)
    jobs.by_key["a"] = job
    job.report(1, 2)
    jobs.stop_all()
    with pytest.raises(Stopped, match="Stopped at 2 of 2"):
        job.report(2, 2)
