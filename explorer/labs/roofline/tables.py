"""The figures' numbers as rows, and what a comparison says in words."""

from __future__ import annotations

from collections.abc import Sequence
from statistics import median

from explorer.labs.charts import Rows, number_text
from explorer.labs.roofline.curves import BatchCurve
from explorer.labs.roofline.levers import Bar
from explorer.labs.roofline.points import Point
from explorer.labs.roofline.two_precisions import Pair


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
            "bytes a pass": round(bar.floor.moved),
            "FLOP a pass": round(bar.floor.flops),
            "bytes to hold": round(bar.floor.held),
            "bound by": bar.floor.bound,
            "ms per token": float(f"{bar.floor.token_s * 1e3:.4g}"),
            "tokens/s in all": float(f"{bar.floor.rate:.4g}"),
        }
        for bar in found
    ]


def curve_rows(curve: BatchCurve) -> Rows:
    """A step's bounds by batch; memory alone where no peak is published."""
    rows = []
    for i, batch in enumerate(curve.batches):
        row: dict[str, object] = {"batch": batch, "memory, ms": float(f"{curve.memory[i] * 1e3:.4g}")}
        if curve.strict:
            named = (("arithmetic", curve.arithmetic), ("textbook", curve.general), ("strict", curve.strict))
            row |= {f"{name}, ms": float(f"{values[i] * 1e3:.4g}") for name, values in named}
            row["tokens/s in all, strict"] = float(f"{batch / curve.strict[i]:.4g}")
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
                f"{first.dtype} sampled": pair.pieces[a],
                f"{second.dtype} sampled": pair.pieces[b],
                "same": "yes" if a == b else "no",
                f"{first.dtype}, ms": f"{first.forward_ms[i - 1]:.2f}" if i else "prefill",
                f"{second.dtype}, ms": f"{second.forward_ms[i - 1]:.2f}" if i else "prefill",
            }
        )
    return rows


def pair_says(pair: Pair) -> tuple[str, ...]:
    """What halving the bytes did here, and whether the tokens stayed the same."""
    first, second = pair.runs
    times = [median(run.forward_ms) for run in pair.runs]
    change = times[0] / times[1]
    faster = f"{change:.2f} times as fast" if change >= 1 else f"{1 / change:.2f} times slower"
    sizes = f"{number_text(first.weight_bytes, 'B')} against {number_text(second.weight_bytes, 'B')}"
    share = second.weight_bytes / first.weight_bytes
    bytes_said = (
        f"{second.dtype} has {share:.2f} of the weights' bytes ({sizes}), and its step is "
        f"{faster}: median {number_text(times[0] / 1e3, 's')} and {number_text(times[1] / 1e3, 's')}."
    )
    above = ", ".join(
        f"{run.dtype} {t / run.floor_ms:.2f} times its lower bound" for run, t in zip(pair.runs, times, strict=True)
    )
    reads = ", ".join(f"{run.dtype} {number_text(run.bandwidth, 'B/s')}" for run in pair.runs)
    if min(t / run.floor_ms for run, t in zip(pair.runs, times, strict=True)) < 1:
        above += ". Less than 1 cannot be: the machine was busy when it was measured. Measure it again, above"
    total = len(first.token_ids)
    tokens = (
        f"All {total} tokens are the same."
        if pair.same == total
        else f"The first {pair.same} of {total} tokens are the same. At step {pair.same} {first.dtype} sampled "
        f"“{pair.pieces[first.token_ids[pair.same]]}” and {second.dtype} “{pair.pieces[second.token_ids[pair.same]]}”: "
        "rounding decided a near tie, and from there on they are two texts."
    )
    return bytes_said, f"Each reads at its own speed here ({reads}); above it: {above}.", tokens
