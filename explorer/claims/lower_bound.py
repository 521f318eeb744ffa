"""Claims about how fast a step can be at best."""

from __future__ import annotations

from engine.costs.bytes import weight_bytes
from engine.costs.step_time import compute_bound_s, general_s, memory_bound_context, memory_bound_s, throughput
from engine.shapes.book import SCALING_BOOK_30B
from explorer.claims.claim import GB, Claim, Number, See, Topic, device, fixed, shape
from explorer.claims.sources import ARITHMETIC, H100, PAGED, SCALING_BOOK

ROOFLINE = See("roofline", {"model": "Llama 3.1 70B", "on": "H100 SXM"})
MS = 1e3
BOOK = fixed(
    weights=SCALING_BOOK_30B.weights, kv_per_token=SCALING_BOOK_30B.kv_bytes_per_token,
    context=SCALING_BOOK_30B.context, chips=SCALING_BOOK_30B.devices, chip="TPU v5e", batch=4,
)  # fmt: skip


def _weights(model: str, dtype_bytes: int) -> tuple[Number, ...]:
    held = weight_bytes(shape(model), dtype_bytes)
    return Number("weights", held / GB, "GB"), Number("weights", held / 2**30, "GiB")


def _cache_share(model: str, tokens: tuple[int, ...], dtype_bytes: int) -> tuple[Number, ...]:
    one = shape(model)
    weights = weight_bytes(one, dtype_bytes)
    return tuple(
        Number(f"cache over weights at {count:,}", one.kv_bytes(count, dtype_bytes) / weights) for count in tokens
    )


def _floor_ms(weights: float, bandwidth: float) -> float:
    return MS * memory_bound_s(batch=1, kv_bytes=0, weights=weights, bandwidth=bandwidth)


def _said_and_real(weights: float, bandwidth: float, model: str, dtype_bytes: int, gpu: str) -> tuple[Number, ...]:
    real = weight_bytes(shape(model), dtype_bytes)
    return (
        Number("from the rounded inputs", _floor_ms(weights, bandwidth), "ms"),
        Number("from the real ones", _floor_ms(real, device(gpu).bandwidth), "ms"),
    )


def _does_it_fit(model: str, gpu: str, said_bandwidth: float) -> tuple[Number, ...]:
    weights, one = weight_bytes(shape(model), 2), device(gpu)
    return (
        Number("cards for the weights alone", weights / one.memory),
        Number("two cards, at 3 TB/s each", _floor_ms(140e9, 2 * said_bandwidth), "ms"),
        Number("eight cards", _floor_ms(weights, 8 * one.bandwidth), "ms"),
        Number("one card, weights in 8 bits", _floor_ms(weight_bytes(shape(model), 1), one.bandwidth), "ms"),
    )


def _other_levers(model: str, gpus: tuple[str, ...]) -> tuple[Number, ...]:
    weights = weight_bytes(shape(model), 2)
    return tuple(Number(f"{name}, if it fitted", _floor_ms(weights, device(name).bandwidth), "ms") for name in gpus)


def _arithmetic(parameters: float, gpu: str, floor_ms: float) -> tuple[Number, ...]:
    spent = MS * compute_bound_s(flops=2 * parameters, peak=device(gpu).peak["bf16"])
    return Number("arithmetic of a step", spent, "ms"), Number("of the lower bound", spent / floor_ms)


def _rates(weights: float, bandwidth: float, model: str, gpu: str) -> tuple[Number, ...]:
    real = weight_bytes(shape(model), 2)
    return (
        Number("rounded inputs", 1e3 / _floor_ms(weights, bandwidth), "tokens/s"),
        Number("real ones", 1e3 / _floor_ms(real, device(gpu).bandwidth), "tokens/s"),
    )


def _book_step(
    weights: float, kv_per_token: float, context: int, chips: int, chip: str, batch: int
) -> tuple[Number, ...]:
    bandwidth = chips * device(chip).bandwidth
    cache = context * kv_per_token
    bound = memory_bound_s(batch=batch, kv_bytes=cache, weights=weights, bandwidth=bandwidth)
    wider = memory_bound_s(batch=batch, kv_bytes=cache, weights=2 * weights, bandwidth=bandwidth)
    return Number("step", MS * bound, "ms"), Number("with weights in bf16", MS * wider, "ms")


def _book_general(
    weights: float, kv_per_token: float, context: int, chips: int, chip: str, batch: int
) -> tuple[Number, ...]:
    bandwidth, peak = chips * device(chip).bandwidth, chips * device(chip).peak["bf16"]
    cache = context * kv_per_token
    step = general_s(batch=batch, kv_bytes=cache, weights=weights, parameters=weights, bandwidth=bandwidth, peak=peak)
    read = memory_bound_s(batch=batch, kv_bytes=cache, weights=0, bandwidth=bandwidth)
    return (
        Number("step", MS * step, "ms"),
        Number("reading caches, of that", MS * read, "ms"),
        Number("arithmetic of the linear layers", MS * 2 * batch * weights / peak, "ms"),
        Number("share that is cache", read / step),
        Number("held in all", (batch * cache + weights) / GB, "GB"),
    )


def _never_compute_bound(
    weights: float, kv_per_token: float, context: int, chips: int, chip: str, batch: int
) -> tuple[Number, ...]:
    bandwidth, peak = chips * device(chip).bandwidth, chips * device(chip).peak["bf16"]
    longest = memory_bound_context(parameters=weights, kv_bytes_per_token=kv_per_token, bandwidth=bandwidth, peak=peak)
    share = _book_general(weights, kv_per_token, context, chips, chip, batch)[3].value
    return Number("share of the step that reads caches", share), Number(
        "longer than this, bytes win at any batch", longest, "tokens"
    )


def _batching(
    weights: float, kv_per_token: float, context: int, chips: int, chip: str, small: int, large: int
) -> tuple[Number, ...]:
    bandwidth, peak = chips * device(chip).bandwidth, chips * device(chip).peak["bf16"]
    done = [
        throughput(
            batch,
            general_s(
                batch=batch, kv_bytes=context * kv_per_token, weights=weights, parameters=weights, bandwidth=bandwidth,
                peak=peak,
            ),
        )
        for batch in (small, large)
    ]  # fmt: skip
    return (
        Number("more tokens in all", done[1].total / done[0].total, "×"),
        Number(f"each request, batch {small}", done[0].per_request, "tokens/s"),
        Number(f"each request, batch {large}", done[1].per_request, "tokens/s"),
    )


CLAIMS = (
    Claim(
        id="bytes-over-bandwidth", verdict="exact", source=SCALING_BOOK, see=ROOFLINE, measure="streaming",
        said="A step takes at least the bytes of weights and caches divided by the bandwidth.",
        because="This bound decides while arithmetic is faster. In general, it is the larger of the two times.",
        formula="(B·S·kv + W) / BW", inputs=fixed(weights=140e9, bandwidth=3e12),
        compute=lambda weights, bandwidth: (Number("140 GB at 3 TB/s", _floor_ms(weights, bandwidth), "ms"),),
    ),
    Claim(
        id="the-cache-term-is-small", verdict="conditional", source=ARITHMETIC, see=ROOFLINE,
        said="For a single request, the cache hardly adds to a step.",
        because="True at a thousand tokens. At 128K it is nearly a third of the weights.",
        formula="S·kv / W",
        inputs=fixed(model="Llama 3.1 70B", tokens=(1024, 8192, 32_000, 131_072), dtype_bytes=2), compute=_cache_share,
    ),
    Claim(
        id="seventy-billion-140-gb", verdict="rounded", source=ARITHMETIC, see=ROOFLINE,
        said="Seventy billion parameters in bf16 are 140 GB.",
        because="Llama 3.1 70B has 70.55 billion.",
        formula="b·N",
        inputs=fixed(model="Llama 3.1 70B", dtype_bytes=2), compute=_weights,
    ),
    Claim(
        id="h100-three-terabytes", verdict="rounded", source=H100, see=ROOFLINE,
        said="An H100 reads three terabytes per second.",
        because="The SXM card reads 3.35 TB/s, the PCIe card 2.0.",
        formula="from the data sheet",
        inputs=fixed(gpus=("H100 SXM", "H100 PCIe")),
        compute=lambda gpus: tuple(Number(name, device(name).bandwidth / 1e12, "TB/s") for name in gpus),
    ),
    Claim(
        id="forty-seven-milliseconds", verdict="rounded", source=ARITHMETIC, see=ROOFLINE,
        said="Reading 140 GB at 3 TB/s takes 47 ms.",
        because="As a division, yes. With the real sizes it is 42 ms.",
        formula="W / BW",
        inputs=fixed(weights=140e9, bandwidth=3e12, model="Llama 3.1 70B", dtype_bytes=2, gpu="H100 SXM"),
        compute=_said_and_real,
    ),
    Claim(
        id="a-70b-on-one-h100", verdict="wrong", source=H100, see=ROOFLINE,
        said="On one H100, a step of a 70B model takes at least 47 ms.",
        because="It cannot run there: 141 GB do not fit into 80. Over several cards, or in 8 bits, the bound is "
        "different.",
        formula="W / memory; W / (cards · BW)", inputs=fixed(model="Llama 3.1 70B", gpu="H100 SXM",
        said_bandwidth=3e12),
        compute=_does_it_fit,
    ),
    Claim(
        id="only-three-levers", verdict="conditional", source=ARITHMETIC, see=ROOFLINE,
        said="Only fewer bits, more cards or speculation make a step faster than 47 ms.",
        because="Faster memory does, and so do mixtures of experts, pruning, and a smaller model.",
        formula="W / BW",
        inputs=fixed(model="Llama 3.1 70B", gpus=("H100 SXM", "H200", "B200")), compute=_other_levers,
    ),
    Claim(
        id="more-compute-does-not-help", verdict="conditional", source=ARITHMETIC, see=ROOFLINE,
        said="More compute would not make a step faster.",
        because="Not for one request: its arithmetic takes 0.3% of the time. For a batch beyond the critical one, it "
        "would.",
        formula="2·N / F, over W / BW",
        inputs=fixed(parameters=70e9, gpu="H100 SXM", floor_ms=140e9 / 3e12 * 1e3), compute=_arithmetic,
    ),
    Claim(
        id="twenty-tokens-a-second", verdict="rounded", source=ARITHMETIC, see=ROOFLINE,
        said="47 ms per step is about twenty tokens per second.",
        because="21.4, and 23.7 with the real sizes.",
        formula="1 / t", inputs=fixed(weights=140e9, bandwidth=3e12, model="Llama 3.1 70B", gpu="H100 SXM"),
        compute=_rates,
    ),
    Claim(
        id="tpu-two-and-a-half-ms", verdict="rounded", source=SCALING_BOOK, see=ROOFLINE,
        said="On sixteen TPU v5e chips, a step of a 30B model at batch 4 takes 2.5 ms.",
        because="With 8-bit weights, 8,192 tokens each, and 100 kB of cache per token, which is often not mentioned.",
        formula="(B·S·kv + W) / BW", inputs=BOOK, compute=_book_step,
    ),
    Claim(
        id="tpu-twenty-one-ms", verdict="rounded", source=SCALING_BOOK, see=ROOFLINE,
        said="On sixteen TPU v5e chips, a step of a 30B model at batch 256 takes 21 ms.",
        because="20.9 ms, three quarters of it reading caches.",
        formula="B·S·kv / BW + max(2·B·N / F, W / BW)", inputs={**BOOK, "batch": 256}, compute=_book_general,
    ),
    Claim(
        id="large-batches-turn-compute-bound", verdict="conditional", source=SCALING_BOOK, see=ROOFLINE,
        said="A large batch makes a step compute-bound.",
        because="Its linear layers, yes. The step as a whole is still memory-bound because of the caches, and with "
        "contexts this long it is at any batch.",
        formula="2·N·BW / (F·kv)", inputs={**BOOK, "batch": 256}, compute=_never_compute_bound,
    ),
    Claim(
        id="batch-as-much-as-you-can", verdict="conditional", source=SCALING_BOOK, see=ROOFLINE,
        said="A server should make the batch as large as possible.",
        because="For total throughput, yes. But each request gets slower: it is a trade-off.",
        formula="B / t(B), 1 / t(B)",
        inputs=fixed(**{name: value for name, value in BOOK.items() if name != "batch"}, small=4, large=256),
        compute=_batching,
    ),
    Claim(
        id="everything-lowers-the-floor", verdict="conditional", source=PAGED, see=ROOFLINE,
        said="Small cache formats, paging, speculation and latent attention all lower the 47 ms.",
        because="The 47 ms are spent reading weights. Only speculation spreads that over more tokens; the others make "
        "room for larger batches. Fewer bits per weight lower it.",
        formula="W / BW has no cache in it", inputs=fixed(weights=140e9, bandwidth=3e12, fewer=2),
        compute=lambda weights, bandwidth, fewer: (
            Number("unmodified", _floor_ms(weights, bandwidth), "ms"),
            Number("weights in half the bits", _floor_ms(weights / fewer, bandwidth), "ms"),
        ),
    ),
)  # fmt: skip

TOPIC = Topic("floor", "How fast a step can be", CLAIMS)
