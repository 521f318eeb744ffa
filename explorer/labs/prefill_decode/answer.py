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

if TYPE_CHECKING:
    from engine.records import StepRecord
    from engine.studies.prefill_and_decode import PhaseTimes


def computed(name: str, pair: Sequence[Request], rates: Rates) -> Answer:
    """The least either request takes, and what bounds the phases."""
    long, short = pair
    least = [request.least_s(rates) for request in pair]
    names = {
        "place": rates.name if rates.name[0].isdigit() or rates.name.startswith("this") else f"one {rates.name}",
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
    words = (
        "On {place}, {name} takes {first} at least for {long} prompt tokens and {short} new ones, and {second} for "
        "{short} and {long}: {times} times as long. "
    )
    if not short.decode.forwards:
        return Answer(f"{words}Prefill is {{prefill}}.", numbers, names)
    return Answer(f"{words}Prefill is {{prefill}}, decode {{decode}}.", numbers, names)


def computed_bars(pair: Sequence[Request], rates: Rates) -> Bars:
    """Where the least time of either request goes."""
    bars = [
        (request, [(phase.name, phase.least_s(rates), f"{phase.bound(rates)}-bound") for phase in request.phases])
        for request in pair
    ]
    return Bars(
        title=f"Least time of the two requests on {rates.name}",
        note="as many tokens go through the model in both",
        bars=[_bar(request.prompt_len, request.new_tokens, phases) for request, phases in bars],
    )


def measured(times: Sequence[PhaseTimes]) -> Answer:
    """What both took here. Where it was stopped, only what a token of either phase took."""
    long, short = times
    names = {"long": f"{long.prompt_len:,}", "short": f"{long.new_tokens:,}"}
    totals = [(t.prefill_ms + t.decode_ms) / 1e3 for t in times]
    numbers = {"first": number_text(totals[0], "s"), "second": number_text(totals[1], "s")}
    words = "{long} prompt tokens and {short} new ones took {first}, {short} and {long} took {second}"
    if totals[0] and long.is_whole and short.is_whole:
        numbers |= {"times": f"{totals[1] / totals[0]:.3g}"}
        words += ": {times} times as long."
    else:
        words += " until it was stopped."
    if long.prefill_per_s and short.decode_per_s:
        numbers |= {
            "prompt": number_text(1 / long.prefill_per_s, "s"),
            "new": number_text(1 / short.decode_per_s, "s"),
        }
        words += " A prompt token cost {prompt}, a new one {new}."
    return Answer(words, numbers, names)


def measured_bars(times: Sequence[PhaseTimes]) -> Bars:
    """Where the time of either request went."""
    return Bars(
        title="Measured time of the two requests",
        note="as many tokens go through the model in both",
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
        "In your run, one forward pass over the {prompt} prompt tokens took {prefill}, {each} a token. A decode step "
        "took {step} for one token: {times} times as long.",
        numbers,
        {"prompt": f"{run.prompt:,}"},
    )


def run_bars(run: RunTimes) -> Bars:
    """What a token of either phase took in the run."""
    each = run.prefill_s / run.prompt
    rows = (("prefill", each, "accent", f"mean of {run.prompt:,} tokens in one forward pass"),
            ("decode", run.step_s, "forced", f"median of {run.steps:,} steps"))  # fmt: skip
    return Bars(
        title="Time of one token in your run",
        bars=[
            Bar(name, (Part(name, size, detail, "accent" if colour == "accent" else "forced"),), number_text(size, "s"),
                detail=detail)
            for name, size, colour, detail in rows
        ],
    )  # fmt: skip


def _bar(prompt_len: int, new_tokens: int, phases: Sequence[tuple[str, float, str]]) -> Bar:
    parts = [
        Part(name, seconds, f"{number_text(seconds, 's')}, {words}", "accent" if name == "prefill" else "forced")
        for name, seconds, words in phases
    ]
    total = sum(seconds for _, seconds, _ in phases)
    return Bar(f"{prompt_len:,} + {new_tokens:,}", parts, number_text(total, "s"), detail="prompt + new tokens")
