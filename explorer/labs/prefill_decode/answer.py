"""The lab's answer: the two requests of a pair, measured here, as this tab's run took them, or by formula."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from statistics import median
from typing import TYPE_CHECKING

from explorer.labs.charts import number_text
from explorer.labs.picture import Bar, Bars, Part
from explorer.labs.prefill_decode.priced import Rates, Request
from explorer.labs.shell import Answer
from explorer.say import words_beside

if TYPE_CHECKING:
    from engine.records import StepRecord
    from engine.studies.prefill_and_decode import PhaseTimes

say = words_beside(__file__)


def computed(name: str, pair: Sequence[Request], rates: Rates) -> Answer:
    """The least either request takes, and what bounds the phases."""
    long, short = pair
    least = [request.least_s(rates) for request in pair]
    names = {
        "place": rates.name
        if rates.name[0].isdigit() or rates.name.startswith("this")
        else say("answer.one", name=rates.name),
        "name": name,
        "long": f"{long.prompt_len:,}",
        "short": f"{long.new_tokens:,}",
    }
    numbers = {
        "first": number_text(least[0], "s"),
        "second": number_text(least[1], "s"),
        "times": f"{least[1] / least[0]:.3g}",
        "prefill": f"{long.prefill.bound(rates)}-bound",
        "decode": f"{short.decode.bound(rates)}-bound",
    }
    bounds = say.unfilled("answer.both") if short.decode.forwards else say.unfilled("answer.prefill")
    return Answer(f"{say.unfilled('answer.priced')} {bounds}", numbers, names)


def computed_bars(pair: Sequence[Request], rates: Rates) -> Bars:
    """Where the least time of either request goes."""
    bars = [
        (request, [(phase.name, phase.least_s(rates), f"{phase.bound(rates)}-bound") for phase in request.phases])
        for request in pair
    ]
    return Bars(
        title=say("answer.priced_title", name=rates.name),
        note=say("answer.as_many"),
        bars=[_bar(request.prompt_len, request.new_tokens, phases) for request, phases in bars],
    )


def measured(times: Sequence[PhaseTimes]) -> Answer:
    """What both took here. Where it was stopped, only what a token of either phase took."""
    long, short = times
    names = {"long": f"{long.prompt_len:,}", "short": f"{long.new_tokens:,}"}
    totals = [(t.prefill_ms + t.decode_ms) / 1e3 for t in times]
    numbers = {"first": number_text(totals[0], "s"), "second": number_text(totals[1], "s")}
    if totals[0] and long.is_whole and short.is_whole:
        numbers |= {"times": f"{totals[1] / totals[0]:.3g}"}
        words = say.unfilled("answer.measured")
    else:
        words = say.unfilled("answer.stopped")
    if long.prefill_per_s and short.decode_per_s:
        numbers |= {
            "prompt": number_text(1 / long.prefill_per_s, "s"),
            "new": number_text(1 / short.decode_per_s, "s"),
        }
        words = f"{words} {say.unfilled('answer.each')}"
    return Answer(words, numbers, names)


def measured_bars(times: Sequence[PhaseTimes]) -> Bars:
    """Where the time of either request went."""
    return Bars(
        title=say("answer.measured_title"),
        note=say("answer.as_many"),
        bars=[
            _bar(
                t.prompt_len,
                t.new_tokens,
                [("prefill", t.prefill_ms / 1e3, "measured"), ("decode", t.decode_ms / 1e3, "measured")],
            )
            for t in times
        ],
    )


@dataclass(frozen=True, slots=True)
class RunTimes:
    """What this tab's run took: seconds of the prefill, the median of its decode steps, and how many of each."""

    prompt: int
    prefill_s: float
    steps: int
    step_s: float


def run_times(records: Sequence[StepRecord]) -> RunTimes | None:
    """The run's own forward passes; None where the prefill came from another's, or nothing was decoded alone."""
    first = records[0]
    if first.timing is None or first.reused_tokens or first.timing.forward_ms <= 0:
        return None
    alone = [r.timing.forward_ms for r in records[1:] if r.timing is not None and r.batch_size == 1]
    if not alone:
        return None
    return RunTimes(len(first.input_ids), first.timing.forward_ms / 1e3, len(alone), median(alone) / 1e3)


def of_run(run: RunTimes) -> Answer:
    """What the run's prefill and a step of it took, token by token."""
    each = run.prefill_s / run.prompt
    numbers = {
        "prefill": number_text(run.prefill_s, "s"),
        "each": number_text(each, "s"),
        "step": number_text(run.step_s, "s"),
        "times": f"{run.step_s / each:.3g}",
    }
    return Answer(
        say.unfilled("answer.run"),
        numbers,
        {"prompt": f"{run.prompt:,}"},
    )


def run_bars(run: RunTimes) -> Bars:
    """What a token of either phase took in the run."""
    each = run.prefill_s / run.prompt
    rows = (("prefill", each, "accent", say("answer.run_prefill", prompt=f"{run.prompt:,}")),
            ("decode", run.step_s, "forced", say("answer.run_decode", steps=f"{run.steps:,}")))  # fmt: skip
    return Bars(
        title=say("answer.run_title"),
        bars=[
            Bar(name, (Part(name, size, detail, "accent" if colour == "accent" else "forced"),), number_text(size, "s"),
                detail=detail)
            for name, size, colour, detail in rows
        ],
    )  # fmt: skip


def _bar(prompt_len: int, new_tokens: int, phases: Sequence[tuple[str, float, str]]) -> Bar:
    parts = [
        Part(
            name,
            seconds,
            say("answer.part", seconds=number_text(seconds, "s"), words=words),
            "accent" if name == "prefill" else "forced",
        )
        for name, seconds, words in phases
    ]
    total = sum(seconds for _, seconds, _ in phases)
    return Bar(
        say("answer.request", prompt_len=f"{prompt_len:,}", new_tokens=f"{new_tokens:,}"),
        parts,
        number_text(total, "s"),
        detail=say("answer.request_detail"),
    )
