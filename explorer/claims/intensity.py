"""Claims about operations per byte, and the batch at which decoding turns."""

from __future__ import annotations

from engine.costs.attention_traffic import attention_intensity, latent_intensity
from engine.costs.step_time import (
    critical_batch,
    critical_batch_of_experts,
    critical_batch_of_matrix,
    ridge,
)
from explorer.claims.claim import Claim, Number, See, Topic, device, fixed, shape
from explorer.claims.sources import FLASH_MLA, SCALING_BOOK

ROOFLINE = See("roofline", {"model": "DeepSeek-V3", "on": "H100 SXM"})


def _of(name: str) -> tuple[float, float]:
    return device(name).peak["bf16"], device(name).bandwidth


def _attention(kv_len: int, group: int, latent: str) -> tuple[Number, ...]:
    return (
        Number("one KV head per query head", attention_intensity(kv_len, 1), "FLOP/B"),
        Number(f"{group} query heads per KV head", attention_intensity(kv_len, 1, group=group), "FLOP/B"),
        Number("8-bit cache", attention_intensity(kv_len, 1, kv_dtype_bytes=1), "FLOP/B"),
        Number("latent attention", _latent(latent, kv_len, 1), "FLOP/B"),
    )


def _latent(model: str, kv_len: int, queries: int) -> float:
    one = shape(model)
    assert one.latent is not None
    return latent_intensity(kv_len, queries, num_heads=one.num_heads, kv_rank=one.latent.kv_rank, rope=one.latent.rope)


def _can_turn(model: str, kv_len: int, gpu: str, throttled_peak: float) -> tuple[Number, ...]:
    peak, bandwidth = _of(gpu)
    return (
        Number("latent attention, one query", _latent(model, kv_len, 1), "FLOP/B"),
        Number("with two queries", _latent(model, kv_len, 2), "FLOP/B"),
        Number("compute-bound from, by the data sheet", ridge(peak, bandwidth), "FLOP/B"),
        Number("compute-bound from, at the rate it sustains", ridge(throttled_peak, bandwidth), "FLOP/B"),
    )


def _critical(devices: tuple[str, ...]) -> tuple[Number, ...]:
    return tuple(Number(name, critical_batch(*_of(name)), "tokens") for name in devices)


def _critical_depends(gpu: str, chip: str, rows: int, columns: int, experts: int, active: int) -> tuple[Number, ...]:
    dense = critical_batch(*_of(chip))
    return (
        Number(f"{chip}, bf16", dense, "tokens"),
        Number(f"{chip}, 8-bit weights", critical_batch(*_of(chip), 1), "tokens"),
        Number(
            f"{gpu}, a matrix of {rows:,} × {columns:,}", critical_batch_of_matrix(*_of(gpu), rows, columns), "tokens"
        ),
        Number(f"{chip}, {active} of {experts} experts", critical_batch_of_experts(dense, experts, active), "tokens"),
    )


CLAIMS = (
    Claim(
        id="decode-attention-near-one", verdict="conditional", source=SCALING_BOOK, see=ROOFLINE,
        said="While decoding, attention does about one operation per byte.",
        because="With one KV head per query head, at two bytes a number. Sharing KV heads multiplies it by the size "
        "of the group, a smaller cache format by what it saves, latent attention by two hundred.",
        formula="(2/b)·g·S·T / (S + g·T)", inputs=fixed(kv_len=4096, group=8, latent="DeepSeek-V3"), compute=_attention,
    ),
    Claim(
        id="attention-never-compute-bound", verdict="wrong", source=FLASH_MLA, see=ROOFLINE,
        said="Nothing makes decode attention compute-bound.",
        because="Latent attention with 128 heads comes close, and with two queries per step it is compute-bound.",
        formula="n·T·(2r + d) / (r + d), against F / BW",
        inputs=fixed(model="DeepSeek-V3", kv_len=10_000_000, gpu="H100 SXM", throttled_peak=865e12), compute=_can_turn,
    ),
    Claim(
        id="the-critical-batch", verdict="conditional", source=SCALING_BOOK, see=ROOFLINE,
        said="Beyond the critical batch, decoding is compute-bound.",
        because="Its linear layers are. The batch counts tokens, not requests. Weights in half the bits halve it, "
        "finite matrices raise it, and experts multiply it, because they share the tokens.",
        formula="F·b / (2·BW)",
        inputs=fixed(gpu="H100 SXM", chip="TPU v5e", rows=8192, columns=28_672, experts=16, active=2),
        compute=_critical_depends,
    ),
    Claim(
        id="280-on-an-h100", verdict="conditional", source=SCALING_BOOK, see=ROOFLINE,
        said="On an H100, the critical batch is about 280 tokens.",
        because="Its data sheet gives 295. For a B200 it is 281, and for the PCIe card 378.",
        formula="F / BW",
        inputs=fixed(devices=("H100 SXM", "H100 PCIe", "H200", "B200", "A100 80GB SXM")), compute=_critical,
    ),
)  # fmt: skip

TOPIC = Topic("intensity", "Arithmetic per byte", CLAIMS)
