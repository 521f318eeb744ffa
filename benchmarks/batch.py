"""Many sessions in one forward, against transformers stepping them in turn and against the linear layers alone."""

from __future__ import annotations

from benchmarks.results import Row, ratio
from benchmarks.setup import Bench, filled, our_step, products, stock_step
from benchmarks.timing import interleave

CONTEXT = 32  # tokens each session holds


def batch_rows(bench: Bench, rounds: int) -> list[Row]:
    """Rows for 8 and for 32 sessions."""
    rows: list[Row] = []
    for sessions in (8, 32):
        store = filled(bench.runner, CONTEXT)
        stores = [store.fork(CONTEXT) for _ in range(sessions)]
        seen = interleave(
            {
                "together": our_step(bench.runner, stores),
                "in turn": stock_step(bench.stock, store, times=sessions),
                "products": products(bench, sessions),
            },
            rounds,
        )
        aim = ("at least", 10.0) if sessions == 32 else ("report", None)
        rows.append(
            ratio(
                f"stock stepping {sessions} in turn over {sessions} in one forward",
                seen["in turn"],
                seen["together"],
                *aim,
            )
        )
        aim = ("at most", 1.6) if sessions == 32 else ("report", None)
        rows.append(
            ratio(f"{sessions} in one forward over the linear layers alone", seen["together"], seen["products"], *aim)
        )
    return rows
