"""Claims about the two phases: one forward pass over the prompt, then a step per token."""

from __future__ import annotations

from engine.costs.attention_traffic import linear_intensity
from engine.costs.bytes import streamed_parameters
from engine.costs.flops import decode_flops, flops_per_pair
from engine.costs.step_time import critical_batch, ridge
from explorer.claims.claim import Claim, Number, See, Topic, device, fixed, shape
from explorer.claims.sources import ARITHMETIC, RASCHKA, SCALING_BOOK

PAIR = See("prefill-decode", {"model": "Llama 3.1 8B", "on": "H100 SXM", "cl": "1000", "cs": "50"})


def _turns(name: str) -> float:
    """The critical batch of a device in 16 bits."""
    peak = device(name).best_peak("bf16")
    assert peak is not None, f"no rate of arithmetic is published for {name}"
    return critical_batch(peak, device(name).bandwidth)


def _critical(devices: tuple[str, ...]) -> tuple[Number, ...]:
    return tuple(Number(name, _turns(name), "tokens") for name in devices)


def _streamed(dense: str, mixture: str) -> tuple[Number, ...]:
    return (
        Number(f"{dense}, streamed", shape(dense).parameters.matmul, "parameters"),
        Number(f"{dense}, held", shape(dense).parameters.total, "parameters"),
        Number(f"{mixture}, used by one token", shape(mixture).parameters.active, "parameters"),
        Number(f"{mixture}, streamed", streamed_parameters(shape(mixture)), "parameters"),
        Number(f"{mixture}, held", shape(mixture).parameters.total, "parameters"),
    )


def _intensity(width: int, gpu: str) -> tuple[Number, ...]:
    return (
        Number("a linear layer, one token", linear_intensity(1, width, width), "FLOP/B"),
        Number(f"{gpu} can do, per byte read", ridge(device(gpu).peak["bf16"], device(gpu).bandwidth), "FLOP/B"),
    )


def _long_against_short(devices: tuple[str, ...], short: int, long: int) -> tuple[Number, ...]:
    """In decode steps: a prefill is one step, or as many as its arithmetic takes where that is more."""

    def ratio(critical: float) -> float:
        return (max(1.0, short / critical) + long - 1) / (max(1.0, long / critical) + short - 1)

    found = [Number(f"{name}, long answer over long prompt", ratio(_turns(name)), "×") for name in devices]
    return (*found, Number("tokens in all, both ways", short + long))


def _prompt_in_steps(devices: tuple[str, ...], prompt: int) -> tuple[Number, ...]:
    return tuple(Number(f"{name}, the prompt costs", prompt / _turns(name), "decode steps") for name in devices)


def _pairs(models: tuple[str, ...]) -> tuple[Number, ...]:
    found = []
    for name in models:
        one = shape(name)
        found.append(Number(f"{name}, keys with values", one.num_layers * one.num_kv_heads))
        found.append(Number(f"{name}, queries", one.num_layers * one.num_heads))
    return tuple(found)


def _growth(model: str, short: int, long: int, dtype_bytes: int) -> tuple[Number, ...]:
    one = shape(model)
    weights, per_token = dtype_bytes * one.parameters.matmul, one.kv_bytes_per_token(dtype_bytes)
    flops = decode_flops(one, long) / decode_flops(one, short)
    moved = (weights + per_token * long) / (weights + per_token * short)
    even = 2 * one.parameters.matmul / (flops_per_pair(one) * one.num_layers)
    return (
        Number(f"arithmetic, {long:,} keys over {short}", flops, "×"),
        Number(f"bytes, {long:,} keys over {short}", moved, "×"),
        Number("attention’s arithmetic equals the linear part’s at", even, "tokens"),
        Number("the cache’s bytes equal the weights’ at", weights / per_token, "tokens"),
    )


CLAIMS = (
    Claim(
        id="prefill-is-compute-bound", verdict="conditional", source=SCALING_BOOK, see=PAIR,
        said="Prefill is compute-bound.",
        because="Only if the prompt is longer than the critical batch. A prompt of 50 tokens is memory-bound, like a "
        "decode step.",
        formula="P > F·b / (2·BW)", inputs=fixed(devices=("TPU v5e", "H100 SXM")), compute=_critical,
    ),
    Claim(
        id="a-step-streams-every-weight", verdict="conditional", source=SCALING_BOOK, measure="streaming",
        said="To generate one token, all weights are read once.",
        because="All that are multiplied. Of a separate input embedding only one row is looked up, and a mixture of "
        "experts reads only the experts its token is routed to.",
        formula="N without an untied input embedding; of experts, the active ones",
        see=See("roofline", {"model": "Llama 3.1 8B", "on": "H100 SXM"}),
        inputs=fixed(dense="Llama 3.1 8B", mixture="DeepSeek-V3"), compute=_streamed,
    ),
    Claim(
        id="decode-is-memory-bound", verdict="conditional", source=SCALING_BOOK, measure="streaming",
        said="Decoding is memory-bound.",
        because="With few requests in a step, yes. From the critical batch on, the linear layers are compute-bound; "
        "attention mostly stays memory-bound.",
        formula="2·B·D·F / bytes, against peak / bandwidth", inputs=fixed(width=4096, gpu="H100 SXM"),
        compute=_intensity, see=See("roofline", {"model": "Llama 3.1 8B", "on": "H100 SXM"}),
    ),
    Claim(
        id="nearly-all-tokens-are-decoded", verdict="exact", source=SCALING_BOOK, see=See("step"),
        said="Nearly every token of an answer comes out of a decode step.",
        because="All but the first, which the prefill’s last row already gives.",
        formula="(N − 1) / N", inputs=fixed(new_tokens=1000),
        compute=lambda new_tokens: (Number("share", (new_tokens - 1) / new_tokens),),
    ),
    Claim(
        id="a-step-computes-one-position", verdict="exact", source=RASCHKA, measure="positions",
        said="With a cache, a step computes query, key and value of the newest token only.",
        because="Older keys and values are read, never made again.",
        formula="positions per step", compute=lambda: (Number("per step", 1, "position"),),
        see=See("without-cache", {"count": "positions"}),
    ),
    Claim(
        id="one-key-one-value-per-step", verdict="conditional", source=ARITHMETIC, see=See("kv-memory"),
        said="A step adds one key with its value, and computes one query.",
        because="One per layer and KV head, and one query per layer and query head: from 90 keys in SmolLM2-135M to "
        "9,216 in GPT-3.",
        formula="layers × KV heads; layers × query heads",
        inputs=fixed(models=("Llama 3.1 8B", "SmolLM2-135M", "GPT-2", "GPT-3 175B")), compute=_pairs,
    ),
    Claim(
        id="twenty-times-longer", verdict="conditional", source=ARITHMETIC, see=PAIR,
        said="Fifty tokens in and a thousand out take twenty times as long as a thousand in and fifty out.",
        because="On an H100, almost; on a laptop’s M4 Max it is fifteen times. The less compute a machine has, the "
        "smaller the ratio; the lab measures it on this machine.",
        formula="(max(1, short / B) + long − 1) / (max(1, long / B) + short − 1), B the critical batch",
        inputs=fixed(devices=("H100 SXM", "Apple M4 Max"), short=50, long=1000), compute=_long_against_short,
    ),
    Claim(
        id="the-prompt-is-cheap", verdict="conditional", source=ARITHMETIC, see=PAIR,
        said="Reading a prompt costs next to nothing compared with writing the answer.",
        because="At full rate on an H100, a thousand prompt tokens cost three to four steps, on a laptop’s M4 Max "
        "sixteen. With less compute they cost more.",
        formula="P / (F·b / (2·BW))", inputs=fixed(devices=("H100 SXM", "Apple M4 Max"), prompt=1000),
        compute=_prompt_in_steps,
    ),
    Claim(
        id="arithmetic-stays-flat", verdict="conditional", source=ARITHMETIC,
        see=See("roofline", {"model": "Llama 3.1 8B", "on": "H100 SXM"}),
        said="As the context grows, a step computes no more; it only reads more.",
        because="Both grow linearly, from a constant. With grouped-query attention, the arithmetic even grows faster "
        "than the bytes.",
        formula="2·N + 4·L·H·h·S, and b·N + kv·S",
        inputs=fixed(model="Llama 3.1 8B", short=1, long=32_000, dtype_bytes=2), compute=_growth,
    ),
    Claim(
        id="cached-once-free-afterwards", verdict="conditional", source=ARITHMETIC,
        see=See("kv-memory", {"model": "Llama 3.1 70B", "ctx": "32,768"}),
        said="What is in the cache was computed once and costs nothing afterwards.",
        because="It is never computed again, but each step reads all of it again.",
        formula="S·kv", inputs=fixed(model="Llama 3.1 70B", tokens=32_000, kv_bytes=2),
        compute=lambda model, tokens, kv_bytes: (
            Number("read again by every step", shape(model).kv_bytes(tokens, kv_bytes), "B"),
        ),
    ),
)  # fmt: skip

TOPIC = Topic("phases", "Prefill and decode", CLAIMS)
