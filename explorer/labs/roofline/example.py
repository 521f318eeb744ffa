"""Two sums worked out in full: a 70B model on one H100, and a textbook's 30B on sixteen TPU v5e."""

from __future__ import annotations

from engine.costs.bytes import weight_bytes
from engine.costs.step_time import critical_batch, general_s, memory_bound_context, memory_bound_s, throughput
from engine.measure.hardware import HARDWARE
from engine.shapes import NAMED
from engine.shapes.book import SCALING_BOOK_30B as BOOK
from explorer.labs.charts import Rows, number_text
from explorer.say import words_beside

say = words_beside(__file__)

LARGE, CARD = "Llama 3.1 70B", "H100 SXM"


def one_card_rows() -> Rows:
    """The 70B in several precisions against one card's memory and bandwidth."""
    shape, card = NAMED[LARGE].shape, HARDWARE[CARD]
    rows = []
    for precision, size in (("bf16", 2.0), ("fp8", 1.0), ("int4, groups of 64", 0.5625)):
        held = weight_bytes(shape, size)
        streamed = shape.parameters.matmul * size
        seconds = memory_bound_s(batch=1, kv_bytes=0, weights=streamed, bandwidth=card.bandwidth)
        left = card.memory - held
        rows.append(
            {
                say("example.weights_as"): precision,
                "weights": number_text(held, "B"),
                say("example.of_the_card"): f"{held / card.memory:.0%}",
                say("example.left"): number_text(left, "B") if left > 0 else say("example.does_not_fit"),
                say("example.tokens"): f"{left / shape.kv_bytes_per_token(2):,.0f}" if left > 0 else "–",
                say("example.bound"): number_text(seconds, "s"),
            }
        )
    return rows


def book_inputs() -> Rows:
    """Everything the textbook's two numbers depend on."""
    given = (
        ("parameters", number_text(BOOK.parameters)),
        (say("example.weights"), number_text(BOOK.weights, "B")),
        (say("example.cache_per_token"), number_text(BOOK.kv_bytes_per_token, "B")),
        (say("example.tokens_each"), f"{BOOK.context:,}"),
        (say("example.cache_each"), number_text(BOOK.kv_bytes, "B")),
        ("chips", say("example.chips", devices=BOOK.devices)),
        (say("example.bandwidth"), number_text(BOOK.bandwidth, "B/s")),
        (say("example.peak"), number_text(BOOK.peak, "FLOP/s")),
        (say("example.memory"), number_text(BOOK.devices * BOOK.memory, "B")),
    )
    return [{"input": name, "value": value} for name, value in given]


def book_results() -> Rows:
    """Its step times, term by term, and what they hide."""
    bandwidth, peak = BOOK.devices * BOOK.bandwidth, BOOK.devices * BOOK.peak
    rows = []
    for batch in BOOK.batches:
        step = general_s(
            batch=batch,
            kv_bytes=BOOK.kv_bytes,
            weights=BOOK.weights,
            parameters=BOOK.parameters,
            bandwidth=bandwidth,
            peak=peak,
        )
        caches = batch * BOOK.kv_bytes / bandwidth
        rate = throughput(batch, step)
        rows.append(
            {
                "batch": batch,
                "caches": number_text(caches, "s"),
                say("example.read"): number_text(BOOK.weights / bandwidth, "s"),
                say("example.multiply"): number_text(2 * batch * BOOK.parameters / peak, "s"),
                "step": number_text(step, "s"),
                say("example.caches_share"): f"{caches / step:.0%}",
                say("example.rate_each"): f"{rate.per_request:,.0f}",
                say("example.rate_all"): f"{rate.total:,.0f}",
                say("example.taken"): number_text(batch * BOOK.kv_bytes + BOOK.weights, "B"),
            }
        )
    return rows


def book_says() -> str:
    """What turns at a large batch, and what does not."""
    bandwidth, peak = BOOK.devices * BOOK.bandwidth, BOOK.devices * BOOK.peak
    batch = critical_batch(BOOK.peak, BOOK.bandwidth, BOOK.weights / BOOK.parameters)
    context = memory_bound_context(
        parameters=BOOK.parameters, kv_bytes_per_token=BOOK.kv_bytes_per_token, bandwidth=bandwidth, peak=peak
    )
    return say("example.turns", batch=f"{batch:,.0f}", context=f"{context:,.0f}", here=f"{BOOK.context:,}")
