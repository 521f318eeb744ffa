"""The lab's answer: the least time of a decode step, what bounds it, and where it stands under the roof."""

from __future__ import annotations

from collections.abc import Sequence

from explorer.labs.charts import number_text
from explorer.labs.picture import Line, Plot, log_axis, round_text
from explorer.labs.picture import Point as Dot
from explorer.labs.roofline.lower_bounds import Floor, Levers, Rates, devices_to_hold
from explorer.labs.roofline.points import Point
from explorer.labs.shell import Answer
from explorer.say import words_beside

say = words_beside(__file__)

ROOF = 40  # points of the roof


def sentence(name: str, floor: Floor, rates: Rates, levers: Levers, moved: str = "") -> Answer:
    """The least a step takes, what bounds it, and what of the machine it uses. `moved` says the levers in words."""
    if rates.measured:
        place = say("answer.here")
    elif levers.devices == 1:
        place = say("answer.one", name=rates.name)
    else:
        place = say("answer.several", devices=levers.devices, name=rates.name)
    names = {"name": name, "place": say("answer.moved", place=place, moved=moved) if moved else place}
    what, bound = "token" if levers.drafted else "step", "alone" if floor.compute_s is None else floor.bound
    sentences = [say.unfilled(f"least.{what}_{bound}")]
    numbers = {"least": number_text(floor.token_s, "s"), "bound": f"{floor.bound}-bound"}
    if floor.compute_s is not None:
        shorter, longer = sorted((floor.compute_s, floor.memory_s))
        numbers |= {"used": _share(shorter / longer)}
    needed = devices_to_hold(floor, rates)
    if needed is not None and needed > levers.devices:
        numbers |= {"needed": f"{needed:,}"}
        sentences.append(say.unfilled("answer.needed"))
    return Answer(" ".join(sentences), numbers, names)


def _share(part: float) -> str:
    """A share of one as people say it: 0.00338 -> "0.3 %"."""
    return say("answer.percent", part=f"{100 * part:.{1 if part < 0.1 else 0}f}")


def roofline(points: Sequence[Point], rates: Rates, levers: Levers, *, named: Sequence[str]) -> Plot:
    """What a second can do against operations per byte, and where steps stand. Points in `named` carry their name."""
    bandwidth, peak = levers.devices * rates.bandwidth, rates.peak(levers.weights)
    peak = levers.devices * peak if peak else None
    spread = [point.intensity for point in points] + ([peak / bandwidth] if peak else [])
    x = log_axis(say("answer.intensity"), min(spread) / 2, max(spread) * 2)
    ratio = (x.high / x.low) ** (1 / ROOF)
    xs = sorted([x.low * ratio**i for i in range(ROOF + 1)] + ([peak / bandwidth] if peak else []))
    roof = [min(peak, at * bandwidth) if peak else at * bandwidth for at in xs]
    return Plot(
        title=say("answer.title", name=rates.name if levers.devices == 1 else f"{levers.devices} × {rates.name}"),
        note=say("answer.note"),
        x=x,
        y=log_axis(say("answer.rate"), min(point.rate for point in points) / 2, max(roof), "FLOP/s"),
        lines=(Line(say("answer.roof"), xs, roof, [number_text(at, "FLOP/s") for at in roof], "mute", wide=True),),
        points=[_dot(point, named) for point in points],
        where={at: say("answer.at", at=round_text(at)) for at in xs},
        kinds=(("decode", "accent"), ("prefill", "forced")),
        alt=say("answer.alt", name=rates.name, points=len(points)),
    )


def _dot(point: Point, named: Sequence[str]) -> Dot:
    words = say(
        "answer.point",
        flops=number_text(point.flops, "FLOP"),
        moved=number_text(point.moved, "B"),
        intensity=f"{point.intensity:.3g}",
        rate=number_text(point.rate, "FLOP/s"),
        seconds=number_text(point.seconds, "s"),
    )
    return Dot(
        point.name,
        point.intensity,
        point.rate,
        words,
        "accent" if point.phase == "decode" else "forced",
        label=point.name if point.name in named else "",
        hollow=not point.measured and point.name not in named,
    )
