"""The pair, measured here: a long prompt with a short answer, and a short prompt with a long answer."""

from __future__ import annotations

import secrets
from collections.abc import Callable
from concurrent.futures import Future
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import streamlit as st

from engine.errors import PromptTooLong
from explorer.engines import bridge
from explorer.hosting.limits import Hosting
from explorer.labs import charts, controls, live, progress, shell
from explorer.labs.prefill_decode import figures, here, table, words
from explorer.labs.prefill_decode.priced import request
from explorer.labs.shell import source
from explorer.say import words_beside
from explorer.workspace.examples import EXAMPLES

if TYPE_CHECKING:
    from engine.llm_engine import LLMEngine
    from engine.studies.prefill_and_decode import PhaseTimes

say = words_beside(__file__)

SHOWN = {
    say("table.request"): "",
    say("table.phase"): "",
    say("table.ms"): "ms",
    say("table.per_second"): "",
    say("table.flops"): "FLOP",
    say("table.moved"): "B",
    say("table.intensity"): "",
    say("table.least_ms"): "ms",
    say("table.times"): "",
    say("table.bound"): "",
}
MOST, MOST_NEW_IN_A_CLASS = 4_000, 64
_ASKED = "loupe_pair_asked"
SOURCE = EXAMPLES[1].prompt  # over and over, until a prompt is long enough


@dataclass(frozen=True, slots=True)
class Asked:
    """The pair to measure, on which model."""

    model: str
    long: int
    short: int

    @property
    def inputs(self) -> tuple[str, int, int]:
        """What a measurement depends on."""
        return self.model, self.long, self.short


def found() -> tuple[PhaseTimes, ...] | None:
    """What was measured of the pair that the controls ask for, before they are drawn; None while nothing was."""
    asked: Asked | None = st.session_state.get(_ASKED)
    if asked is None:
        return None
    now = replace(
        asked, long=st.session_state.get("long", asked.long), short=st.session_state.get("short", asked.short)
    )
    times: tuple[PhaseTimes, ...] | None = progress.result_of("phases", now.inputs)
    return times or None


def show(engine: LLMEngine, hosting: Hosting) -> None:
    """The button and its two numbers, and what was measured, folded away."""
    was_found = found() is not None
    most = engine.config.prefill_chunk if hosting.is_hosted else MOST
    most_new = MOST_NEW_IN_A_CLASS if hosting.is_hosted else MOST
    place = st.container()
    with st.container(horizontal=True, key="measure_controls"):
        long = controls.whole(
            say("measured.long"), url="long", default=min(200, most_new), low=1, high=min(most, most_new)
        )
        short = controls.whole(say("measured.short"), url="short", default=20, low=1, high=min(most, most_new))
    asked = st.session_state[_ASKED] = Asked(engine.info.id, long, short)
    with place:
        times = progress.task(
            "phases",
            say("measured.measure"),
            _begin(engine, long, short),
            inputs=asked.inputs,
            again=say("measured.again"),
            is_primary=True,
        )
    st.caption(
        say("measured.what", long=f"{long:,}", short=f"{short:,}", name=shell.escaped(engine.info.name), source=SOURCE)
    )
    if times and not was_found:
        st.rerun()  # the answer, further up, is about this now
    if times:
        _results(engine, times)


def _begin(
    engine: LLMEngine, long: int, short: int
) -> Callable[[progress.TaskProgress], Future[tuple[PhaseTimes, ...]]]:
    def begin(report: progress.TaskProgress) -> Future[tuple[PhaseTimes, ...]]:
        limit = engine.info.context_limit
        if limit is not None and long + short - 1 > limit:
            raise PromptTooLong(
                say(
                    "measured.too_long",
                    long=f"{long:,}",
                    short=f"{short:,}",
                    needed=f"{long + short - 1:,}",
                    name=engine.info.name,
                    limit=f"{limit:,}",
                    fewer=f"{long + short - 1 - limit:,}",
                )
            )
        ids = bridge.encode(engine, SOURCE, "raw").ids
        return run(engine, bridge.phases(ids, [(long, short), (short, long)]), report)

    return begin


def run(engine: LLMEngine, study: Any, report: progress.TaskProgress) -> Future[Any]:
    """Run something that has `run` and `stop` on the engine thread; stopped, it gives what was measured."""

    def told(done: int, total: int) -> None:
        try:
            report(done, total, say("measured.pass"))
        except progress.Stopped:
            study.stop()

    key, owner = f"measured-{secrets.token_hex(8)}", live.payer()
    return engine.study(key, lambda runner: study.run(runner, told), owner=owner)


def _results(engine: LLMEngine, times: tuple[PhaseTimes, ...]) -> None:
    sizes = here.sizes_here(engine)
    rates = here.rates_here(engine)
    is_priced = here.is_priced(engine)
    priced = [request(sizes, t.prompt_len, t.new_tokens) for t in times] if is_priced else []
    rows = table.measured_rows(times, priced, rates) if is_priced else table.timed_rows(times)
    part = shell.details(say("measured.numbers"), key="pd_measured")
    if not part:
        return
    with part:
        charts.table(table.shown(rows, SHOWN), name="measured phases")
        if rates is not None and is_priced:
            st.text(words.regime(priced[0], sizes, rates))
        source(
            "measured",
            say("measured.source", device=engine.info.device, dtype=engine.info.dtype),
        )
        charts.show(figures.steps(times), key="phases-turns", table=table.step_rows(times))
