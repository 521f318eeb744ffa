"""What a race showed, in sentences. Every number in them is counted, measured or computed from the bill."""

from __future__ import annotations

from collections.abc import Sequence
from statistics import median
from typing import TYPE_CHECKING

from explorer.labs.charts import number_text
from explorer.labs.without_cache.totals import Bill, formula

if TYPE_CHECKING:
    from engine.studies.uncached import RaceStep


FAIR = (
    "Both loops run the same model in the same process and take turns: one forward pass each, and at every step the "
    "other one begins. A busy moment of this machine hits both.\n"
    "Both compute one row of logits, the last, and keep that row's query as every step of Loupe does. Neither time "
    "includes sampling. Each forward pass runs on whatever kernel is quickest for its number of rows.\n"
    "Without the cache, keys and values live for one forward pass and are stored nowhere. With it they are appended to "
    "a buffer that doubles when it is full, and that time counts.\n"
    "A warm-up pass over the prompt comes first and is not counted. Step 0, the prefill, is the same pass in both: "
    "what lies between the two there is noise. Both sample with the same settings and, where it is "
    "not greedy, the same u. No stop rule applies, so that N tokens are N tokens."
)


def expected(prompt_len: int, new_tokens: int) -> str:
    """The price before it is paid."""
    counts = formula(prompt_len, new_tokens)
    return (
        f"P = {prompt_len:,} prompt tokens and N = {new_tokens:,} new ones: "
        f"N·P + N(N − 1)/2 = {counts.uncached:,} positions without the cache, P + N − 1 = {counts.cached:,} with it. "
        "The prefill is in both sums."
    )


def counted(bill: Bill) -> str:
    """Whether the loops' own counts are the formulas'."""
    p, n = bill.prompt_len, bill.steps
    uncached, cached = int(bill.uncached.total("positions")), int(bill.cached.total("positions"))
    if not bill.counts_agree:
        return (
            f"The counts are wrong: {uncached:,} and {cached:,} positions were run, the formulas say "
            f"{bill.formula.uncached:,} and {bill.formula.cached:,}. This is a fault of Loupe."
        )
    return (
        f"Counted in the loops, and equal to the formulas: {n:,}·{p:,} + {n:,}·{n - 1:,}/2 = {uncached:,} positions "
        f"without the cache, {p:,} + {n:,} − 1 = {cached:,} with it, {bill.ratio('positions'):,.1f} times fewer; "
        f"{int(bill.uncached.total('pairs')):,} and {int(bill.cached.total('pairs')):,} query-key pairs per layer "
        f"and head, {bill.ratio('pairs'):,.1f} times fewer."
    )


def times(bill: Bill) -> str:
    """Which loop was ahead, from when on, and where the cache did not pay."""
    uncached, cached = bill.uncached.total("ms") / 1e3, bill.cached.total("ms") / 1e3
    whole = f"{number_text(uncached, 's')} without the cache, {number_text(cached, 's')} with it"
    ahead = bill.ahead_from
    if ahead is None:
        verdict = (
            f"The cache did not pay in these {bill.steps:,} steps: a few tokens cost hardly more than one as long as a "
            "step is memory-bound. Take more tokens or a longer prompt."
        )
    elif ahead == 0:
        verdict = f"{bill.ratio('ms'):,.2f} times less. The cached total was ahead at every step."
    else:
        verdict = f"{bill.ratio('ms'):,.2f} times less. The cached total is ahead from step {ahead:,} on."
    return f"{whole}: {verdict} {typical(bill)} {slower(bill)}".strip()


def typical(bill: Bill) -> str:
    """A step of either loop as it mostly was; the median does not see one busy moment."""
    if bill.steps < 2:
        return ""
    cached, uncached = median(bill.cached.ms[1:]), median(bill.uncached.ms[1:])
    return f"Half of the steps took less than {uncached:,.1f} ms without, and {cached:,.1f} ms with it."


def slower(bill: Bill) -> str:
    """Steps that the cache did not make quicker, said and not hidden."""
    count = len([step for step in bill.slower_steps if step > 0])
    if not count:
        return ""
    return (
        f"In {count:,} of the {bill.steps - 1:,} steps after the prefill the cached forward pass was the slower one: "
        "short sequences, or a busy moment of this machine."
    )


def agreement(steps: Sequence[RaceStep]) -> str:
    """Whether both drew the same tokens, and how far apart their logits were."""
    apart = [step for step in steps if not step.agrees]
    worst = max(steps, key=lambda step: step.logit_difference)
    size = f"The largest difference of any logit was {worst.logit_difference:.2g}, at step {worst.index:,}"
    if not apart:
        return (
            f"Both sampled the same {len(steps):,} token ids, step by step. {size}: they agree to rounding, not bit "
            "for bit, because the same sums are added up in another order."
        )
    first = apart[0]
    return (
        f"At {len(apart):,} of {len(steps):,} steps the two sampled different tokens, first at step {first.index:,}: "
        f"{first.cached.token_id} with the cache, {first.uncached.token_id} without, where the logits differ by "
        f"{first.logit_difference:.2g} and the likeliest token led by {first.lead:.2g}. Both went on with the cached "
        f"loop's token. {size}."
    )
