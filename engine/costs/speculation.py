"""Speculation by arithmetic: tokens per pass of the large model, speed-up, and the rule that keeps it exact.

`acceptance` is the probability that one drafted token is accepted, each by itself. A share of drafted tokens
that were accepted is another number: a rejection ends the draft, so later tokens were never tried.
"""

from __future__ import annotations

from collections.abc import Sequence


def tokens_per_pass(acceptance: float, drafted: int) -> float:
    """Tokens expected from one pass that verifies `drafted` tokens; the pass itself always gives one."""
    if acceptance == 1:
        return drafted + 1
    return (1 - acceptance ** (drafted + 1)) / (1 - acceptance)


def tokens_per_pass_by_share(accepted_share: float, drafted: int) -> float:
    """The same from the share of all drafted tokens that were accepted."""
    return 1 + accepted_share * drafted


def speed_up(acceptance: float, drafted: int, draft_cost: float) -> float:
    """Times faster than one token a pass. `draft_cost` is a draft step's time as a share of the large model's."""
    return tokens_per_pass(acceptance, drafted) / (drafted * draft_cost + 1)


def pays(acceptance: float, drafted: int, draft_cost: float) -> bool:
    """Whether a round brings more tokens than it costs passes."""
    return speed_up(acceptance, drafted, draft_cost) > 1


def acceptance(target: Sequence[float], draft: Sequence[float]) -> float:
    """Probability that a token drawn from `draft` is accepted under `target`: the mass they share."""
    return sum(min(p, q) for p, q in zip(target, draft, strict=True))


def residual(target: Sequence[float], draft: Sequence[float]) -> tuple[float, ...]:
    """What to draw from after a rejection: the mass of `target` above `draft`, made to sum to one.

    Where nothing lies above, a rejection cannot happen; `target` itself is given back.
    """
    above = [max(0.0, p - q) for p, q in zip(target, draft, strict=True)]
    total = sum(above)
    return tuple(x / total for x in above) if total > 0 else tuple(target)
