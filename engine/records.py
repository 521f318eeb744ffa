"""What leaves the engine: frozen values in plain Python and numpy.

One StepRecord is one forward of the model and the token drawn from its last row. Step 0 is the
prefill, whose forward comes in several chunks where the prompt is long. After any step the cache holds
every token except the one just drawn.

Letters in shapes: L layers, H query heads, G key-value heads, K keys visible, M tokens fed, V vocabulary.
"""

from __future__ import annotations

from dataclasses import dataclass, fields
from functools import lru_cache
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from engine.config import SamplingParams

Phase = Literal["prefill", "decode"]
DrawMode = Literal["greedy", "inverse_cdf", "multinomial", "forced"]
FinishReason = Literal[
    "end_id", "max_new_tokens", "context_limit", "stop_string", "kv_bytes", "nan", "user", "disconnect"
]

CANDIDATES = 256  # likeliest tokens whose raw logits every record keeps
SHOWN = 64  # of those, how many carry their probability at every stage
TAIL_BINS = 64  # histogram over all the other logits


def freeze_arrays(record: object) -> None:
    """Make every array of a dataclass read-only: frozen=True does not reach into arrays."""
    kind: Any = type(record)
    for name in _names(kind):
        value = getattr(record, name)
        if isinstance(value, np.ndarray):
            value.setflags(write=False)


@lru_cache
def _names(kind: Any) -> tuple[str, ...]:
    return tuple(field.name for field in fields(kind))


@dataclass(frozen=True, slots=True, eq=False)
class Candidates:
    """The raw scores of one step, small enough to keep: the likeliest tokens, the rest as a histogram.

    ids, logits  (N,) int32, float32, in falling order; N = min(CANDIDATES, V)
    seen         (N,) bool, whether the repetition penalty acts on the token
    log_sum_exp  over all V logits, so that raw probability = exp(logit - log_sum_exp)
    tail_counts  (TAIL_BINS,) int32, how many of the other V - N logits fall in each equal bin
    tail_low, tail_high  edges of the histogram
    """

    ids: NDArray[np.int32]
    logits: NDArray[np.float32]
    seen: NDArray[np.bool_]
    log_sum_exp: float
    tail_counts: NDArray[np.int32]
    tail_low: float
    tail_high: float

    def __post_init__(self) -> None:
        freeze_arrays(self)


@dataclass(frozen=True, slots=True, eq=False)
class Stage:
    """The distribution after one stage of sampling.

    name          "logits", "repetition_penalty", "temperature", "top_k", "top_p", "min_p" or "greedy"
    label         the name with its setting, e.g. "top-k 50"
    kept          tokens with a probability above zero
    removed_mass  probability, before this stage, of the tokens this stage removed
    entropy_bits  of this distribution; zero-probability tokens add nothing
    top_ids, top_probs  (16,) the likeliest at this stage, in falling order (fewer if fewer are kept)
    probs         (SHOWN,) float64, aligned with the record's candidates.ids[:SHOWN]; 0 where removed
    """

    name: str
    label: str
    kept: int
    removed_mass: float
    entropy_bits: float
    top_ids: NDArray[np.int32]
    top_probs: NDArray[np.float64]
    probs: NDArray[np.float64]

    def __post_init__(self) -> None:
        freeze_arrays(self)


@dataclass(frozen=True, slots=True)
class Draw:
    """How one token came out of the final distribution.

    u            uniform number in [0, 1) keyed by (seed, step); None where no draw was made
    drawn_id     what the sampler took; differs from token_id only where a token was forced
    token_id     what the sequence goes on with
    low, high    the interval of [0, 1) that belongs to drawn_id, tokens laid out by falling probability
    raw_prob, final_prob  of token_id, before and after the stages
    raw_rank     1 for the likeliest token by raw logits
    """

    mode: DrawMode
    u: float | None
    drawn_id: int
    token_id: int
    low: float
    high: float
    raw_prob: float
    final_prob: float
    raw_rank: int


@dataclass(frozen=True, slots=True)
class PenalisedEnd:
    """An EOS token that the repetition penalty acted on: chat templates end each turn with one, so it is in the prompt.

    logit, penalised  before and after the penalty
    in_prompt         else it was generated, and decoding went on past it
    """

    token_id: int
    logit: float
    penalised: float
    in_prompt: bool


@dataclass(frozen=True, slots=True)
class StopCheck:
    """One stop rule after one token.

    state      how near it was, in words: "12 of 256 new tokens"
    nearness   0 (far) to 1 (fired); None where a rule knows no distance
    """

    rule: str
    label: str
    armed: bool
    fired: bool
    state: str
    nearness: float | None


@dataclass(frozen=True, slots=True)
class StepTiming:
    """Wall time in ms; the device is synchronised before and after the forward. The parts add up to the total.

    wait     others were served: before the forward, between its chunks and layers, and while a batch's other
             sessions had their tokens sampled. A cache that had to be filled again first is in here too
    forward  the model, for this session and whoever shared it
    sample   stages, draw and stop rules of this session
    total    from asking to the finished record
    """

    wait_ms: float
    forward_ms: float
    sample_ms: float
    total_ms: float

    @property
    def other_ms(self) -> float:
        """This session's own bookkeeping: what is not waiting, forward or sampling. Copies of caches and logits."""
        return max(0.0, self.total_ms - self.wait_ms - self.forward_ms - self.sample_ms)


@dataclass(frozen=True, slots=True)
class MemoryUse:
    """Bytes after a step: sums over our own live tensors, one formula, and (the last two) what the system says.

    kv_formula      kv_len times the bytes one token adds, from the model's shape
    capture         queries and logits kept so that recent steps can be looked at
    process         resident set of this process; None where the system would not say
    device_allocated  what the CUDA allocator has handed out; None on CPU
    """

    weight_bytes: int
    kv_live_bytes: int
    kv_reserved_bytes: int
    kv_formula_bytes: int
    capture_bytes: int
    process_bytes: int | None
    device_allocated_bytes: int | None


@dataclass(frozen=True, slots=True, eq=False)
class StepRecord:
    """One forward of the model and the token drawn from its last row.

    index         0 is the prefill; 1, 2, ... are decode steps
    input_ids     (M) ids fed: the whole prompt at step 0, one id after
    positions     (M) their positions
    emitted_ids   ids drawn: one
    kv_len        tokens in the cache after this forward
    kv_bytes      bytes those tokens take: sum over live tensors
    kv_norms      (2, L, G, M) float32, L2 norm of each new key (0) and value (1), from the cache itself
    text          generated text so far, held back where a stop string may still complete
    held          text held back for that reason
    pending       bytes of a character that is not complete yet
    finish_reason None while decoding may go on
    logit_rows    rows of logits computed in this forward; one is used. 0 where it came with a shared prompt
    batch_size    sessions that shared the forward
    forwards      1 in a decode step; a prefill runs as many as its prompt has chunks that were not reused
    reused_tokens of input_ids, the first ones, which no forward ran: another session had prefilled the same
    rebuilt_tokens  prefilled again before this step, because the cache had been released; their time is in the wait
    recovered_tokens  copied from a shared prompt before this step, for the same reason
    sampling      the settings that made the draw
    timing        None where the record was rebuilt by prefilling: no such step was run, so none was timed
    penalised_ends  EOS tokens whose logit the repetition penalty changed before this draw
    """

    index: int
    input_ids: tuple[int, ...]
    positions: tuple[int, ...]
    emitted_ids: tuple[int, ...]
    kv_len: int
    kv_bytes: int
    kv_norms: NDArray[np.float32]
    candidates: Candidates
    stages: tuple[Stage, ...]
    draw: Draw
    sampling: SamplingParams
    stops: tuple[StopCheck, ...]
    finish_reason: FinishReason | None
    text: str
    held: str
    pending: bytes
    timing: StepTiming | None
    memory: MemoryUse
    logit_rows: int
    batch_size: int
    forwards: int = 1
    reused_tokens: int = 0
    rebuilt_tokens: int = 0
    recovered_tokens: int = 0
    penalised_ends: tuple[PenalisedEnd, ...] = ()

    def __post_init__(self) -> None:
        freeze_arrays(self)

    @property
    def phase(self) -> Phase:
        return "prefill" if self.index == 0 else "decode"


@dataclass(frozen=True, slots=True, eq=False)
class PromptRow:
    """What the model would have said after one prompt token: a row that generation throws away."""

    position: int
    top_ids: NDArray[np.int32]  # (10,)
    top_probs: NDArray[np.float64]  # (10,)
    actual_next_id: int | None  # the token that does follow; None at the end of the prompt
    actual_next_prob: float | None

    def __post_init__(self) -> None:
        freeze_arrays(self)


@dataclass(frozen=True, slots=True)
class StageProbability:
    """One named token's probability after one stage."""

    stage: str
    label: str
    prob: float


@dataclass(frozen=True, slots=True)
class TokenStanding:
    """Where one token of the vocabulary stood at one step.

    rank        1 for the likeliest by raw logit, equal ones by rising id
    logit       raw
    stages      its probability after every stage, 0 from the one on that removed it
    removed_by  label of that stage; None where the token could be sampled
    """

    token_id: int
    rank: int
    logit: float
    stages: tuple[StageProbability, ...]
    removed_by: str | None


@dataclass(frozen=True, slots=True)
class Check:
    """One comparison of the live self-test.

    compared    what was held against what, in words
    difference  the largest difference found, in `unit`
    tolerance   the largest that passes
    """

    name: str
    compared: str
    passed: bool
    difference: float
    tolerance: float
    unit: str
