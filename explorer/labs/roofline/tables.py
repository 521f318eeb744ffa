"""The figures' numbers as rows, and what a comparison says in words."""

from __future__ import annotations

from collections.abc import Sequence
from statistics import median

from explorer.labs.charts import Rows, number_text
from explorer.labs.roofline.curves import BatchCurve
from explorer.labs.roofline.levers import Bar
from explorer.labs.roofline.points import Point
from explorer.labs.roofline.two_precisions import Pair
from explorer.say import words_beside

say = words_beside(__file__)


def point_rows(points: Sequence[Point]) -> Rows:
    """A roofline's points."""
    return [
        {
            "what": point.name,
            "source": "measured" if point.measured else "computed",
            "FLOP": point.flops,
            "bytes": point.moved,
            "FLOP/byte": round(point.intensity, 4),
            "seconds": float(f"{point.seconds:.4g}"),
            "FLOP/s": float(f"{point.rate:.4g}"),
        }
        for point in points
    ]


def bar_rows(found: Sequence[Bar]) -> Rows:
    """The floor under each lever."""
    return [
        {
            "lever": bar.name,
            "setting": bar.said,
            "on": "yes" if bar.on else "no",
            say("tables.bytes"): round(bar.floor.moved),
            say("tables.flop"): round(bar.floor.flops),
            say("tables.hold"): round(bar.floor.held),
            say("tables.bound"): bar.floor.bound,
            say("tables.ms_per_token"): float(f"{bar.floor.token_s * 1e3:.4g}"),
            say("tables.rate_all"): float(f"{bar.floor.rate:.4g}"),
        }
        for bar in found
    ]


def curve_rows(curve: BatchCurve) -> Rows:
    """A step's bounds by batch; memory alone where no peak is published."""
    rows = []
    for i, batch in enumerate(curve.batches):
        row: dict[str, object] = {"batch": batch, say("tables.memory_ms"): float(f"{curve.memory[i] * 1e3:.4g}")}
        if curve.strict:
            named = (("arithmetic", curve.arithmetic), ("textbook", curve.general), ("strict", curve.strict))
            row |= {say("tables.bound_ms", name=name): float(f"{values[i] * 1e3:.4g}") for name, values in named}
            row[say("tables.rate_strict")] = float(f"{batch / curve.strict[i]:.4g}")
        rows.append(row)
    return rows


def pair_rows(pair: Pair) -> Rows:
    """What each format drew and took, step by step."""
    first, second = pair.runs
    rows = []
    for i, (a, b) in enumerate(zip(first.token_ids, second.token_ids, strict=True)):
        rows.append(
            {
                "step": i,
                say("tables.sampled", dtype=first.dtype): pair.pieces[a],
                say("tables.sampled", dtype=second.dtype): pair.pieces[b],
                "same": "yes" if a == b else "no",
                say("tables.time", dtype=first.dtype): f"{first.forward_ms[i - 1]:.2f}" if i else "prefill",
                say("tables.time", dtype=second.dtype): f"{second.forward_ms[i - 1]:.2f}" if i else "prefill",
            }
        )
    return rows


def pair_says(pair: Pair) -> tuple[str, ...]:
    """What halving the bytes did here, and whether the tokens stayed the same."""
    first, second = pair.runs
    times = [median(run.forward_ms) for run in pair.runs]
    change = times[0] / times[1]
    values = {
        "dtype": second.dtype,
        "share": f"{second.weight_bytes / first.weight_bytes:.2f}",
        "before_bytes": number_text(first.weight_bytes, "B"),
        "bytes": number_text(second.weight_bytes, "B"),
        "change": f"{max(change, 1 / change):.2f}",
        "before": number_text(times[0] / 1e3, "s"),
        "after": number_text(times[1] / 1e3, "s"),
    }
    bytes_said = say("tables.faster", **values) if change >= 1 else say("tables.slower", **values)
    above = ", ".join(
        say("tables.times_bound", dtype=run.dtype, times=f"{t / run.floor_ms:.2f}")
        for run, t in zip(pair.runs, times, strict=True)
    )
    reads = ", ".join(
        say("tables.bandwidth", dtype=run.dtype, bandwidth=number_text(run.bandwidth, "B/s")) for run in pair.runs
    )
    speeds = say("tables.speeds", reads=reads, above=above)
    if min(t / run.floor_ms for run, t in zip(pair.runs, times, strict=True)) < 1:
        speeds += f" {say('tables.too_fast')}"
    total = len(first.token_ids)
    tokens = (
        say("tables.all_same", total=total)
        if pair.same == total
        else say(
            "tables.parted",
            same=pair.same,
            total=total,
            one=first.dtype,
            one_token=pair.pieces[first.token_ids[pair.same]],
            other=second.dtype,
            other_token=pair.pieces[second.token_ids[pair.same]],
        )
    )
    return bytes_said, speeds, tokens
