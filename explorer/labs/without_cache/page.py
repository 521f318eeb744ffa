"""Lab: the same tokens with and without the cache, turn by turn, and what either paid."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import Future
from dataclasses import dataclass
from typing import TYPE_CHECKING

import streamlit as st
from streamlit.delta_generator import DeltaGenerator

from explorer.engines import bridge
from explorer.hosting.runtime import runtime
from explorer.labs import charts, controls, live, picture, progress, shell
from explorer.labs.charts import number_text
from explorer.labs.shell import source
from explorer.labs.without_cache import answer, figures, lanes, table, words
from explorer.labs.without_cache.setup import Setup, ask
from explorer.labs.without_cache.totals import QUANTITIES, Bill, Quantity, bill, knows_arithmetic
from explorer.say import words_beside

if TYPE_CHECKING:
    from engine.costs.shape import ModelShape
    from engine.llm_engine import LLMEngine
    from engine.studies.uncached import Race, RaceStep

say = words_beside(__file__)

COUNTED: dict[Quantity, str] = {"positions": "positions", "pairs": "query-key pairs", "flops": "FLOPs"}
EXAMPLE_PROMPT, EXAMPLE_NEW = ("The", " cat", " sat"), 48  # before a model is loaded, and so before there are ids
_RACE = "loupe_race"


def page() -> None:
    """The answer by formula, then the race that measures it, and what it cost."""
    shell.lab(
        say("page.title"),
        say("page.question"),
    )
    stage = shell.stage()
    places = Places(stage.answer.empty(), stage.picture.empty())
    if live.loaded_engine() is None:
        _say_computed(places, len(EXAMPLE_PROMPT), EXAMPLE_NEW, None, run="before")
    with stage.controls:
        engine = live.engine()
        setup = ask(engine, runtime().hosting) if engine is not None else None
    if engine is None or setup is None:
        return
    was_found = bool(progress.result_of("race", setup))
    if not was_found:
        _say_computed(places, len(setup.prompt_ids), setup.new_tokens, engine.info.shape)
    with stage.below:
        steps = progress.task(
            "race",
            say("page.race"),
            _begin(engine, setup),
            inputs=setup,
            again=say("page.again"),
            meanwhile=lambda: _lanes(engine, setup),
            is_primary=True,
        )
        source("computed", words.expected(len(setup.prompt_ids), setup.new_tokens))
        if steps:
            _lanes(engine, setup)
    if steps and not was_found:
        st.rerun()  # the answer, further up, is about this now
    if steps:
        _results(places, engine, setup, steps)


@dataclass(frozen=True, slots=True)
class Places:
    """Where the answer and its picture stand; what is put there later takes the place of what was there."""

    answer: DeltaGenerator
    picture: DeltaGenerator


def _say_computed(places: Places, prompt_len: int, new_tokens: int, shape: ModelShape | None, run: str = "now") -> None:
    said, plot = answer.computed(prompt_len, new_tokens, shape), answer.counted_plot(prompt_len, new_tokens)
    _say(places, said, plot, ("computed", "N·P + N(N − 1)/2 against P + N − 1"), run)


def _say(
    places: Places, said: shell.Answer, plot: picture.Plot, origin: tuple[shell.Source, str], run: str = "now"
) -> None:
    """`run` tells apart what is shown before the model is there, and what then takes its place."""
    with places.answer.container():
        shell.answer(said, *origin, key=f"answer_{run}", terms=("KV cache", "prefill", "forward pass"))
    with places.picture.container():
        picture.show(plot, key=f"race_so_far_{run}", size="mid")


def _begin(engine: LLMEngine, setup: Setup) -> Callable[[progress.TaskProgress], Future[tuple[RaceStep, ...]]]:
    """Start a race that this tab can find again while it runs."""

    def begin(report: progress.TaskProgress) -> Future[tuple[RaceStep, ...]]:
        race = started(engine, setup, report)
        st.session_state[_RACE] = (setup, race)
        return race.future

    return begin


def started(engine: LLMEngine, setup: Setup, report: progress.TaskProgress) -> Race:
    """A race under way. Stopped, it ends with the steps that are done."""
    race = bridge.race(setup.prompt_ids, setup.new_tokens, setup.sampling, setup.seed)

    def told(done: int, total: int) -> None:
        try:
            report(done, total, "step")
        except progress.Stopped:
            race.stop()

    race.start(engine, told, owner=live.payer())
    return race


def _race(setup: Setup) -> Race | None:
    of, race = st.session_state.get(_RACE, (None, None))
    return race if of == setup else None


def _lanes(engine: LLMEngine, setup: Setup) -> None:
    race = _race(setup)
    if race is not None:
        lanes.show(race, engine.tokenizer, charts.palette())


def _results(places: Places, engine: LLMEngine, setup: Setup, steps: tuple[RaceStep, ...]) -> None:
    paid = bill(steps, len(setup.prompt_ids), engine.info.shape)
    if len(steps) < setup.new_tokens:
        st.text(say("page.stopped", steps=f"{len(steps):,}", new_tokens=f"{setup.new_tokens:,}"))
    origin = say("page.measured", engine=_machine(engine))
    _say(places, answer.measured(paid), answer.measured_plot(paid), ("measured", origin))
    st.text(words.times(paid))
    part = shell.fold(say("page.times"), key="race_times", controls=("log",))
    with part:
        st.text(words.FAIR)
        log = controls.switch(say("page.log_scale"), url="log")
        if part.open:
            _two_charts(paid, "ms", log=log)
            source("measured", origin)
    part = shell.fold(say("page.counts"), key="race_counts", controls=("count",))
    with part:
        quantity = _ask_quantity(engine, paid)
        if part.open:
            _two_charts(paid, quantity, log=False)
            source("computed" if quantity == "flops" else "measured", _origin(engine, paid, quantity))
    same = shell.details(say("page.same"), key="race_tokens")
    if same:
        with same:
            st.text(words.agreement(steps))
            texts = bridge.token_labels(engine, [step.token_id for step in steps])
            charts.show(figures.disagreement(steps), key="race-difference", table=table.step_rows(steps, texts))


def _ask_quantity(engine: LLMEngine, paid: Bill) -> Quantity:
    st.text(words.counted(paid))
    quantities = [q for q in QUANTITIES if q != "ms" and (q != "flops" or knows_arithmetic(engine.info.shape))]
    return controls.choice(
        say("page.count"), quantities, url="count", default="positions", words=lambda q: COUNTED[q], style="segments"
    )


def _two_charts(paid: Bill, quantity: Quantity, *, log: bool) -> None:
    for place, running in zip(st.columns(2, gap="medium"), (False, True), strict=True):
        figure = (figures.in_all if running else figures.per_step)(paid, quantity, log=log)
        with place:
            charts.show(
                figure,
                key=f"race-{quantity}-{'so-far' if running else 'each'}",
                table=table.quantity_rows(paid, quantity, running=running),
            )


def _origin(engine: LLMEngine, paid: Bill, quantity: Quantity) -> str:
    if quantity == "flops":
        uncached, cached = paid.uncached.total("flops"), paid.cached.total("flops")
        return say(
            "page.flops",
            uncached=number_text(uncached, "FLOP"),
            cached=number_text(cached, "FLOP"),
            times=f"{paid.ratio('flops'):,.1f}",
        )
    kept = engine.info.kv_bytes_per_token * int(paid.cached.total("positions"))
    return say(
        "page.kept", kept=number_text(kept, "B"), kv_bytes_per_token=number_text(engine.info.kv_bytes_per_token, "B")
    )


def _machine(engine: LLMEngine) -> str:
    info = engine.info
    return say("page.engine", device=info.device, dtype=info.dtype, name=info.name)
