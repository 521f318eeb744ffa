"""What a race showed, in sentences. Every number in them is counted, measured or computed from the bill."""

from __future__ import annotations

from collections.abc import Sequence
from statistics import median
from typing import TYPE_CHECKING

from explorer.labs.charts import number_text
from explorer.labs.without_cache.totals import Bill, formula
from explorer.say import words_beside

if TYPE_CHECKING:
    from engine.studies.uncached import RaceStep

say = words_beside(__file__)


FAIR = say("words.fair")


def expected(prompt_len: int, new_tokens: int) -> str:
    """The price before it is paid."""
    counts = formula(prompt_len, new_tokens)
    return say(
        "words.counted",
        prompt_len=f"{prompt_len:,}",
        new_tokens=f"{new_tokens:,}",
        uncached=f"{counts.uncached:,}",
        cached=f"{counts.cached:,}",
    )


def counted(bill: Bill) -> str:
    """Whether the loops' own counts are the formulas'."""
    p, n = bill.prompt_len, bill.steps
    uncached, cached = int(bill.uncached.total("positions")), int(bill.cached.total("positions"))
    if not bill.counts_agree:
        return say(
            "words.wrong",
            uncached=f"{uncached:,}",
            cached=f"{cached:,}",
            formula_uncached=f"{bill.formula.uncached:,}",
            formula_cached=f"{bill.formula.cached:,}",
        )
    return say(
        "words.right",
        n=f"{n:,}",
        p=f"{p:,}",
        n_less_one=f"{n - 1:,}",
        uncached=f"{uncached:,}",
        cached=f"{cached:,}",
        times=f"{bill.ratio('positions'):,.1f}",
        pairs_uncached=f"{int(bill.uncached.total('pairs')):,}",
        pairs_cached=f"{int(bill.cached.total('pairs')):,}",
        pairs_times=f"{bill.ratio('pairs'):,.1f}",
    )


def times(bill: Bill) -> str:
    """Which loop was ahead, from when on, and where the cache did not pay."""
    uncached, cached = bill.uncached.total("ms") / 1e3, bill.cached.total("ms") / 1e3
    both = {"uncached": number_text(uncached, "s"), "cached": number_text(cached, "s")}
    ahead, ratio = bill.ahead_from, f"{bill.ratio('ms'):,.2f}"
    if ahead is None:
        verdict = say("words.not_paid", **both, steps=f"{bill.steps:,}")
    elif ahead == 0:
        verdict = say("words.ahead_always", **both, times=ratio)
    else:
        verdict = say("words.ahead_from", **both, times=ratio, ahead=f"{ahead:,}")
    return " ".join(sentence for sentence in (verdict, typical(bill), slower(bill)) if sentence)


def typical(bill: Bill) -> str:
    """A step of either loop as it mostly was; the median does not see one busy moment."""
    if bill.steps < 2:
        return ""
    cached, uncached = median(bill.cached.ms[1:]), median(bill.uncached.ms[1:])
    return say("words.half", uncached=f"{uncached:,.1f}", cached=f"{cached:,.1f}")


def slower(bill: Bill) -> str:
    """Steps that the cache did not make quicker, said and not hidden."""
    count = len([step for step in bill.slower_steps if step > 0])
    if not count:
        return ""
    return say("words.slower", count=f"{count:,}", steps=f"{bill.steps - 1:,}")


def agreement(steps: Sequence[RaceStep]) -> str:
    """Whether both drew the same tokens, and how far apart their logits were."""
    apart = [step for step in steps if not step.agrees]
    worst = max(steps, key=lambda step: step.logit_difference)
    size = say("words.largest", logit_difference=f"{worst.logit_difference:.2g}", index=f"{worst.index:,}")
    if not apart:
        return f"{say('words.same', steps=f'{len(steps):,}')} {size} {say('words.rounding')}"
    first = apart[0]
    parted = say(
        "words.apart",
        apart=f"{len(apart):,}",
        steps=f"{len(steps):,}",
        index=f"{first.index:,}",
        cached_id=first.cached.token_id,
        uncached_id=first.uncached.token_id,
        logit_difference=f"{first.logit_difference:.2g}",
        lead=f"{first.lead:.2g}",
    )
    return f"{parted} {size}"
