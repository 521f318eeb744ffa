"""How the token was taken: u worked out on paper, and the interval that holds it by sums of this file's own."""

from __future__ import annotations

from engine.studies.self_check.findings import Tally
from engine.studies.self_check.judged import Judged
from engine.studies.self_check.scores import Spread, staged
from engine.studies.self_check.uniform import uniform_of


def judge_draw(tally: Tally, judged: Judged, raw: Spread, final: Spread) -> None:
    """Mode, u, interval, tokens, probabilities and rank.

    u must lie in the interval of the token that was sampled, and that interval must be the one worked out here.
    """
    draw, chosen, name = judged.record.draw, judged.chosen, judged.name
    if chosen.forced:  # sampled again when somebody forced a token, maybe from the logits of a replay
        raw, final = _widened(judged)
    is_greedy = chosen.sampling.temperature == 0
    u = None if is_greedy else uniform_of(chosen.seed, judged.step)
    mode = "forced" if chosen.forced else "greedy" if is_greedy else "inverse_cdf"
    tally.same(f"{name} way of sampling", draw.mode, mode)
    tally.same(f"{name} u", draw.u, u)
    tally.same(f"{name} token", draw.token_id, chosen.token_id)
    if is_greedy:
        tally.same(f"{name} interval", (draw.low, draw.high), (0.0, 1.0))
        tally.same(f"{name} sampled token may be the likeliest", final.scores.place(draw.drawn_id) is not None, True)
    else:
        low, most_low, end, most_end = final.interval_of(draw.drawn_id)
        tally.within(f"{name} beginning of the interval", draw.low, low, most_low)
        tally.within(f"{name} end of the interval", draw.high, end, most_end)
        tally.same(f"{name} interval holds u", u is not None and draw.low <= u < draw.high, True)
    if not chosen.forced and draw.drawn_id != chosen.token_id:
        tally.same(f"{name} token is explained by rounding", _may_be_sampled(judged, u), True)
    tally.within(f"{name} raw probability", draw.raw_prob, *raw.prob_of(draw.token_id))
    least, most = final.prob_of(draw.token_id)
    tally.within(f"{name} final probability", draw.final_prob, least, most)
    _judge_rank(tally, judged, raw)


def _judge_rank(tally: Tally, judged: Judged, raw: Spread) -> None:
    place, draw = raw.scores.place(judged.record.draw.token_id), judged.record.draw
    if place is None:
        tally.same(f"{judged.name} rank", draw.raw_rank, raw.scores.ids.size + 1)
        return
    surely, possibly = raw.scores.before(place)
    tally.within(f"{judged.name} rank", draw.raw_rank, 1 + int(surely.sum()), 1 + int(possibly.sum()))


def _may_be_sampled(judged: Judged, u: float | None) -> bool:
    """Whether the recipe's token could come of logits that differ from the stock model's by rounding alone.

    A rebuilt step samples again from logits of another forward pass. Where u lies so near the edge of an interval
    that the difference between two passes moves the edge over it, or two logits are nearer to each other than twice
    that difference, the recipe may go on with the neighbour. The token is possible if the widest interval that it can
    have, with every logit free to move by the slack, holds u.
    """
    _, final = _widened(judged)
    if final.scores.place(judged.chosen.token_id) is None:
        return False
    if u is None:
        return True  # greedy: it may be the likeliest
    low, _, _, high = final.interval_of(judged.chosen.token_id)
    return low <= u < high


def _widened(judged: Judged) -> tuple[Spread, Spread]:
    """First and last stage of any healthy forward pass: every logit of the stock model free to move by the slack."""
    stages = staged(judged.widened(), frozenset(judged.context), judged.chosen.sampling)
    return Spread(stages[0][2]), Spread(stages[-1][2])
