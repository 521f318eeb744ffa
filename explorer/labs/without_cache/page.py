"""Lab: the same tokens with and without the cache, turn by turn, and what either paid."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import Future
from typing import TYPE_CHECKING

import streamlit as st

from explorer.engines import bridge
from explorer.hosting.runtime import runtime
from explorer.labs import charts, controls, live, progress
from explorer.labs.charts import number_text
from explorer.labs.shell import lab, section, source
from explorer.labs.without_cache import figures, lanes, table, words
from explorer.labs.without_cache.setup import Setup, ask
from explorer.labs.without_cache.totals import QUANTITIES, Bill, Quantity, bill, knows_arithmetic

if TYPE_CHECKING:
    from engine.llm_engine import LLMEngine
    from engine.studies.uncached import Race, RaceStep

COUNTED: dict[Quantity, str] = {"positions": "positions", "pairs": "query-key pairs", "flops": "FLOPs"}
_RACE = "loupe_race"


def page() -> None:
    """Choose, race, see what it cost."""
    lab(
        "With and without the KV cache",
        "What does it cost to run the whole sequence again for every token, and from which step on does keeping "
        "keys and values pay?",
    )
    engine = live.engine()
    setup = ask(engine, runtime().hosting) if engine is not None else None
    if engine is None or setup is None:
        return
    source("computed", words.expected(len(setup.prompt_ids), setup.new_tokens))
    steps = progress.task("race", "Race", _begin(engine, setup), inputs=setup, meanwhile=lambda: _lanes(engine, setup))
    if steps:
        _lanes(engine, setup)
        _results(engine, setup, steps)


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


def _results(engine: LLMEngine, setup: Setup, steps: tuple[RaceStep, ...]) -> None:
    paid = bill(steps, len(setup.prompt_ids), engine.info.shape)
    if len(steps) < setup.new_tokens:
        st.text(f"Stopped after {len(steps):,} of {setup.new_tokens:,} steps; what follows is about those.")
    section("What it cost")
    st.text(words.times(paid))
    source(
        "measured", f"here, just now, on {_machine(engine)}: wall clock around each forward pass, device synchronised."
    )
    with st.expander("What is timed, and how it is kept fair"):
        st.text(words.FAIR)
    log = controls.switch("Logarithmic scale", url="log")
    _two_charts(paid, "ms", log)
    section("What was run", words.counted(paid))
    quantities = [q for q in QUANTITIES if q != "ms" and (q != "flops" or knows_arithmetic(engine.info.shape))]
    quantity = controls.choice(
        "Count", quantities, url="count", default="positions", words=lambda q: COUNTED[q], style="segments"
    )
    _two_charts(paid, quantity, log)
    source("computed" if quantity == "flops" else "measured", _origin(engine, paid, quantity))
    section("The same tokens?", words.agreement(steps))
    texts = bridge.token_labels(engine, [step.token_id for step in steps])
    charts.show(figures.disagreement(steps), key="race-difference", table=table.step_rows(steps, texts))


def _two_charts(paid: Bill, quantity: Quantity, log: bool) -> None:
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
        return (
            "operations of this model's shape, 2 per weight and token and 4·H·D per query-key pair and layer: "
            f"{number_text(uncached, 'FLOP')} against {number_text(cached, 'FLOP')}, "
            f"{paid.ratio('flops'):,.1f} times fewer."
        )
    kept = engine.info.kv_bytes_per_token * int(paid.cached.total("positions"))
    return (
        f"counted in the loops. The price of it: {number_text(kept, 'B')} of keys and values kept "
        f"({number_text(engine.info.kv_bytes_per_token, 'B')} a token, by formula)."
    )


def _machine(engine: LLMEngine) -> str:
    info = engine.info
    return f"{info.device}, {info.dtype}, {info.name}"
