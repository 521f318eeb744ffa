"""Claims about guessing ahead."""

from __future__ import annotations

from engine.costs.speculation import acceptance, residual, speed_up, tokens_per_pass, tokens_per_pass_by_share
from explorer.claims.claim import Claim, Number, See, Topic, fixed
from explorer.claims.sources import CHEN, LEVIATHAN

ROOFLINE = See("roofline")


def _per_pass(rates: tuple[float, ...], drafted: int) -> tuple[Number, ...]:
    alone = [Number(f"each accepted with {rate:g}", tokens_per_pass(rate, drafted), "tokens") for rate in rates]
    share = [Number(f"{rate:g} of the drafts", tokens_per_pass_by_share(rate, drafted), "tokens") for rate in rates]
    return (*alone, *share)


def _speed(low: float, low_drafts: int, high: float, high_drafts: int, draft_cost: float) -> tuple[Number, ...]:
    return (
        Number(f"accepted with {low:g}, {low_drafts} drafts", speed_up(low, low_drafts, draft_cost), "×"),
        Number(f"accepted with {high:g}, {high_drafts} drafts", speed_up(high, high_drafts, draft_cost), "×"),
    )


def _marginal(target: tuple[float, ...], draft: tuple[float, ...]) -> tuple[Number, ...]:
    """The distribution that comes out, by adding up all that can happen."""
    rest, rejected = residual(target, draft), 1 - acceptance(target, draft)
    out = [min(p, q) + rejected * r for p, q, r in zip(target, draft, rest, strict=True)]
    furthest = max(abs(o - p) for o, p in zip(out, target, strict=True))
    return (
        Number("drafts accepted", acceptance(target, draft)),
        Number("largest difference from the large model’s distribution", furthest),
    )


CLAIMS = (
    Claim(
        id="several-tokens-a-pass", verdict="exact", source=LEVIATHAN, see=ROOFLINE,
        said="With speculative decoding, one pass of the large model yields several tokens.",
        because="Between one and one more than were drafted.",
        formula="(1 − a^(k+1)) / (1 − a)",
        inputs=fixed(rate=0.8, drafted=4),
        compute=lambda rate, drafted: (Number("expected", tokens_per_pass(rate, drafted), "tokens"),),
    ),
    Claim(
        id="sixty-to-eighty-percent-on-code", verdict="not verifiable", source=CHEN,
        said="Of the tokens drafted for code, 60 to 80% are accepted.",
        because="The two founding papers give no rate for code. For translation and summaries they report 0.53 to "
        "0.82.",
        formula="published range", inputs=fixed(lowest=0.53, highest=0.82),
        compute=lambda lowest, highest: (Number("lowest", lowest), Number("highest", highest)),
    ),
    Claim(
        id="three-to-five-tokens", verdict="conditional", source=LEVIATHAN, see=ROOFLINE,
        said="With 60 to 80% accepted, a pass yields three to five tokens.",
        because="If that is the share of drafts that are accepted. If it is the chance of each draft, 0.6 can never "
        "reach three.",
        formula="(1 − a^(k+1)) / (1 − a); 1 + r·k", inputs=fixed(rates=(0.6, 0.8), drafted=4), compute=_per_pass,
    ),
    Claim(
        id="two-to-three-times-faster", verdict="rounded", source=LEVIATHAN, see=ROOFLINE,
        said="Speculative decoding is two to three times faster.",
        because="As measured with one request. In large batches the gain shrinks, and can become a loss.",
        formula="E / (k·c + 1)",
        inputs=fixed(low=0.6, low_drafts=4, high=0.8, high_drafts=5, draft_cost=0.05), compute=_speed,
    ),
    Claim(
        id="several-for-the-price-of-one", verdict="conditional", source=CHEN, see=ROOFLINE,
        said="Correct drafts give several tokens for the price of one.",
        because="Plus the cost of drafting, and only while there is compute to spare.",
        formula="k·c + 1",
        inputs=fixed(drafted=4, draft_cost=0.128),
        compute=lambda drafted, draft_cost: (Number("costs", drafted * draft_cost + 1, "passes"),),
    ),
    Claim(
        id="speculation-keeps-the-law", verdict="exact", source=LEVIATHAN,
        said="The small model drafts, the large one only checks, and the text is distributed as if the large one had "
        "sampled it.",
        because="Accept with probability min(1, p/q), else sample from the remainder: added up, that is p again.",
        formula="min(p, q) + (1 − Σ min(p, q)) · rest", inputs=fixed(target=(0.7, 0.3), draft=(0.4, 0.6)),
        compute=_marginal,
    ),
)  # fmt: skip

TOPIC = Topic("speculation", "Guessing ahead", CLAIMS)
