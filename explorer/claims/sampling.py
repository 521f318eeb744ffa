"""Claims about drawing a token, repeating a draw, and when to stop."""

from __future__ import annotations

from typing import get_args

import numpy as np

from engine.records import FinishReason
from explorer.claims.claim import Claim, Number, See, Topic, fixed
from explorer.claims.sources import HOLTZMAN, ILLUSION, INVARIANCE, LLAMA_CARD, PAGED, TRANSFORMERS, VLLM

STEP_PAGE = See("step")


def _softmax(scores: tuple[float, ...], temperature: float) -> np.ndarray[tuple[int], np.dtype[np.float64]]:
    weights = np.exp((np.array(scores) - max(scores)) / temperature)
    return np.asarray(weights / weights.sum())


def _by_temperature(scores: tuple[float, ...], temperatures: tuple[float, ...]) -> tuple[Number, ...]:
    return tuple(Number(f"the likeliest at temperature {t:g}", float(_softmax(scores, t)[0])) for t in temperatures)


def _nucleus(flat: tuple[float, ...], sharp: tuple[float, ...], top_p: float) -> tuple[Number, ...]:
    def kept(probs: tuple[float, ...]) -> int:
        return int(np.searchsorted(np.cumsum(sorted(probs, reverse=True)), top_p - 1e-12) + 1)

    return (
        Number("kept of a flat distribution", kept(flat), "tokens"),
        Number("kept of a sharp one", kept(sharp), "tokens"),
    )


def _published(**settings: float) -> tuple[Number, ...]:
    return tuple(Number(name.replace("_", " "), value) for name, value in settings.items())


def _sums(a: float, b: float, c: float) -> tuple[Number, ...]:
    left, right = (a + b) + c, a + (b + c)
    half = np.float16
    narrow = float((half(a) + half(b)) + half(c)) - float(half(a) + (half(b) + half(c)))
    return Number("float64, left less right", left - right), Number("float16, left less right", narrow)


SAMPLING = (
    Claim(
        id="greedy-takes-the-largest", verdict="exact", source=INVARIANCE, measure="greedy", see=STEP_PAGE,
        said="Greedy decoding takes the largest logit, and leaves nothing to chance.",
        because="Ties need a rule: Loupe takes the lowest token id.",
        formula="argmax z",
        inputs=fixed(scores=(2.0, 5.0, 5.0, 1.0)),
        compute=lambda scores: (Number("index taken", int(np.argmax(scores))),),
    ),
    Claim(
        id="temperature-divides", verdict="exact", source=HOLTZMAN, see=STEP_PAGE,
        said="Temperature divides the logits: below one it sharpens, above one it flattens.",
        because="Near zero it is greedy, and zero itself is handled as a special case.",
        formula="e^(z/T) / sum", inputs=fixed(scores=(2.0, 1.0, 0.0), temperatures=(0.5, 1.0, 2.0)),
        compute=_by_temperature,
    ),
    Claim(
        id="nucleus-adapts", verdict="exact", source=HOLTZMAN, see=STEP_PAGE,
        said="Top-p keeps the fewest tokens that together reach p: many where the distribution is flat, few where it "
        "is sharp.",
        because="Top-k keeps the same number in both cases.",
        formula="smallest set with sum ≥ p",
        inputs=fixed(flat=(0.25, 0.25, 0.25, 0.25), sharp=(0.9, 0.05, 0.03, 0.02), top_p=0.9), compute=_nucleus,
    ),
    Claim(
        id="temperature-07-is-usual", verdict="conditional", source=TRANSFORMERS, see=STEP_PAGE,
        said="Chat models come with a temperature near 0.7.",
        because="Between 0.6 and 1.0. Libraries default to 1.0 or 0.8, and models bring their own.",
        formula="published settings",
        inputs=fixed(transformers=1.0, vLLM=1.0, llama_cpp=0.8, Llama_3_1_Instruct=0.6, Qwen2_5_Instruct=0.7),
        compute=_published,
    ),
    Claim(
        id="top-k-forty-to-fifty", verdict="conditional", source=TRANSFORMERS, see=STEP_PAGE,
        said="Top-k is set to forty or fifty.",
        because="In two libraries. transformers applies its 50 even if the model says nothing; vLLM leaves it off.",
        formula="published settings, 0 is off", inputs=fixed(transformers=50, llama_cpp=40, vLLM=0,
        Qwen2_5_Instruct=20),
        compute=_published,
    ),
)  # fmt: skip

REPEATING = (
    Claim(
        id="temperature-zero-not-repeatable", verdict="conditional", source=INVARIANCE, measure="greedy",
        is_contrary=True,
        said="Even at temperature 0, the same prompt gives different answers.",
        because="On shared servers, where other users change the batch. The same batch gives the same answer, and "
        "kernels that do not depend on the batch gave one answer in a thousand runs.",
        formula="different completions of 1,000, published", inputs=fixed(shared_server=80, batch_invariant_kernels=1),
        compute=_published,
    ),
    Claim(
        id="sums-depend-on-their-order", verdict="conditional", source=INVARIANCE,
        said="Answers differ because floating-point sums are added in another order each time.",
        because="The order does matter. But it depends on the size of the batch, not on chance: given the same batch, "
        "a kernel adds in the same order.",
        formula="(a + b) + c − (a + (b + c))", inputs=fixed(a=0.1, b=0.2, c=0.3), compute=_sums,
    ),
    Claim(
        id="cached-fp16-always-diverges", verdict="conditional", source=ILLUSION,
        said="In 16 bits, the text with a cache and the text without always differ.",
        because="One preprint reports this, and no difference at all in 32 bits. Others find equal text. The lab runs "
        "both loops on the loaded model and compares them.",
        formula="published share of runs that differ", inputs=fixed(fp16=1.0, fp32=0.0), compute=_published,
        see=See("without-cache"),
    ),
)  # fmt: skip

STOPPING = (
    Claim(
        id="stopping-is-the-engines", verdict="conditional", source=LLAMA_CARD, see=STEP_PAGE,
        said="The model does not decide when to stop.",
        because="The engine checks. But the EOS token it checks for is sampled from the model’s own distribution.",
        formula="P(EOS | text), one of the probabilities",
    ),
    Claim(
        id="end-of-turn-ends", verdict="conditional", source=LLAMA_CARD, see=STEP_PAGE,
        said="Chat models stop at an end-of-turn token, not at an end-of-text token.",
        because="Normally both are in the list. Llama 3.1 lists three.",
        formula="EOS ids of the settings",
        inputs=fixed(end_ids=(128_001, 128_008, 128_009)),
        compute=lambda end_ids: (Number("EOS ids", len(end_ids)),),
    ),
    Claim(
        id="a-dozen-stop-rules", verdict="wrong", source=VLLM, see=STEP_PAGE,
        said="Engines check a dozen stop conditions.",
        because="Fewer. Loupe’s own are counted here, including logits that are not numbers.",
        formula="reasons to finish",
        compute=lambda: (Number("of Loupe", len(get_args(FinishReason))),),
    ),
    Claim(
        id="length-is-known-at-the-end", verdict="exact", source=PAGED, see=See("kv-memory"),
        said="How long an answer gets is known only when it ends.",
        because="This is why caches are allocated in blocks (PagedAttention).",
        formula="the EOS token is sampled, too",
    ),
    Claim(
        id="cap-of-901-fails-at-900", verdict="wrong", source=VLLM, see=STEP_PAGE,
        said="With a limit of 901 new tokens, the answer stops at token 900.",
        because="It stops after the 901st. Token 900 is the last with a limit of 900.",
        formula="stop once n ≥ cap", inputs=fixed(cap=901),
        compute=lambda cap: (Number("tokens out", next(n for n in range(1, cap + 2) if n >= cap)),),
    ),
)  # fmt: skip

TOPICS = (
    Topic("sampling", "Sampling a token", SAMPLING),
    Topic("repeating", "Getting the same again", REPEATING),
    Topic("stopping", "When to stop", STOPPING),
)
