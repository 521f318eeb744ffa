"""The lab's answer: what every token costs with the cache and without, counted by formula or measured in a race."""

from __future__ import annotations

from itertools import accumulate
from typing import TYPE_CHECKING

from engine.costs.flops import decode_flops, prefill_flops
from engine.costs.shape import ModelShape
from explorer.labs.charts import number_text
from explorer.labs.picture import Line, Plot, Point, axis
from explorer.labs.shell import Answer
from explorer.labs.without_cache.totals import Bill, formula
from explorer.say import words_beside

if TYPE_CHECKING:
    from collections.abc import Sequence

say = words_beside(__file__)

WITH, WITHOUT = say("answer.cached"), say("answer.uncached")
MOST_DOTS = 240  # of a curve


def computed(prompt_len: int, new_tokens: int, shape: ModelShape | None) -> Answer:
    """Tokens run through the model, and operations where the model's are known."""
    counts = formula(prompt_len, new_tokens)
    names = {"prompt": say("answer.prompt_tokens", n=prompt_len), "new": f"{new_tokens:,}"}
    numbers = {
        "cached": f"{counts.cached:,}",
        "uncached": f"{counts.uncached:,}",
        "times": f"{counts.uncached / counts.cached:.3g}",
    }
    if shape is None or not shape.knows_weights:
        return Answer(say.unfilled("answer.work"), numbers, names)
    with_it, without = operations(prompt_len, new_tokens, shape)
    numbers |= {"flops": number_text(with_it, "FLOP"), "more": number_text(without, "FLOP")}
    return Answer(say.unfilled("answer.work_and_flops"), numbers, names)


def operations(prompt_len: int, new_tokens: int, shape: ModelShape) -> tuple[int, int]:
    """Floating-point operations of all forward passes, with the cache and without; one row of logits each."""
    lengths = range(prompt_len + 1, prompt_len + new_tokens)
    first = prefill_flops(shape, prompt_len, last_logits_only=True)
    cached = first + sum(decode_flops(shape, length, absorbed=False) for length in lengths)
    return cached, first + sum(prefill_flops(shape, length, last_logits_only=True) for length in lengths)


def measured(paid: Bill) -> Answer:
    """What a race took, both loops."""
    cached, uncached = paid.cached.total("ms") / 1e3, paid.uncached.total("ms") / 1e3
    numbers = {"cached": number_text(cached, "s"), "uncached": number_text(uncached, "s")}
    names = {"new": say("answer.new_tokens", n=paid.steps)}
    ahead = paid.ahead_from
    if ahead is None:
        return Answer(say.unfilled("answer.not_paid"), numbers, names)
    numbers |= {"times": f"{paid.ratio('ms'):.3g}", "ahead": f"{ahead:,}"}
    if ahead == 0:
        return Answer(say.unfilled("answer.at_once"), numbers, names)
    return Answer(say.unfilled("answer.from_step"), numbers, names)


def counted_plot(prompt_len: int, new_tokens: int) -> Plot:
    """Tokens run so far, step by step, by formula."""
    steps = range(new_tokens)
    uncached = list(accumulate(prompt_len + step for step in steps))
    cached = [prompt_len + step for step in steps]
    return _plot(say("answer.work_title"), cached, uncached, "", [f"{n:,}" for n in uncached])


def measured_plot(paid: Bill) -> Plot:
    """Seconds so far, step by step, as they were measured."""
    cached, uncached = ([ms / 1e3 for ms in one.running("ms")] for one in (paid.cached, paid.uncached))
    return _plot(say("answer.race_title"), cached, uncached, "s", [number_text(s, "s") for s in uncached])


def _plot(title: str, cached: Sequence[float], uncached: Sequence[float], unit: str, said: Sequence[str]) -> Plot:
    every = max(1, len(cached) // MOST_DOTS)
    steps = [step for step in range(len(cached)) if step % every == 0 or step == len(cached) - 1]

    def words(values: Sequence[float]) -> list[str]:
        return [number_text(values[step], unit) if unit else f"{values[step]:,.0f}" for step in steps]

    last = steps[-1]
    cost, dear = words(cached)[-1], words(uncached)[-1]
    ends = (
        Point(WITH, last, cached[last], cost, "accent", label=cost),
        Point(WITHOUT, last, uncached[last], dear, "forced", label=dear),
    )
    return Plot(
        title=title,
        note=say("answer.note"),
        x=axis("step", max(1, last), is_cut=True),
        y=axis("", max(max(uncached), max(cached)), unit),
        lines=[
            Line(WITH, steps, [cached[step] for step in steps], words(cached), "accent", "solid", wide=True),
            Line(WITHOUT, steps, [uncached[step] for step in steps], words(uncached), "forced", "dash", wide=True),
        ],
        points=ends,
        where={float(step): say("answer.step", step=f"{step:,}") for step in steps},
        alt=say("answer.alt", title=title, said=said[last]),
    )
