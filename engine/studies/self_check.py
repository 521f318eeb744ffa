"""Numbers checked: this very session held against stock transformers, live.

The oracle shares the weights and nothing else: eager attention, its own cache, its own processors. A check
that fails says so; nothing here is skipped to look good.
"""

from __future__ import annotations

from collections.abc import Generator
from concurrent.futures import Future
from typing import Any

import torch
from torch import Tensor
from transformers import DynamicCache, GenerationConfig, PreTrainedModel

from engine.config import SamplingParams
from engine.decode import inspection
from engine.decode.sampling import run_stages, sample
from engine.decode.session_state import SessionState
from engine.decode.stepping import Stepper
from engine.forward.model_runner import Feed
from engine.records import Check, StepRecord
from engine.session import DecodeSession

GREEDY_TOKENS = 16  # enough to see a wrong position or mask; a few seconds on a laptop
CONTEXT_LIMIT = 1024  # eager attention keeps every weight: 30 x 9 x 1024 x 1024 x 4 B is already 1.1 GB
LOGIT_TOLERANCE = 1e-3  # float32 logits of size 20, summed in another order
ATTENTION_TOLERANCE = 1e-5


def check_numbers(session: DecodeSession) -> Future[tuple[Check, ...]]:
    """Compare ids, logits, attention, kept sets and bytes of `session` with stock transformers. Moves nothing."""
    return session.run(lambda state: _checks(session.engine.stepper, session.engine.stock, state))


def _checks(stepper: Stepper, stock: PreTrainedModel, state: SessionState) -> Generator[None, None, tuple[Check, ...]]:
    record = state.require_step(len(state.records) - 1)
    tolerance = 1.0 if stepper.info.dtype == "float32" else 2000.0  # 16 bits carry 3 digits, not 7
    checks = [_greedy_ids(stepper, stock, state)]
    yield
    cache = DynamicCache()  # without a config it keeps every token of a sliding layer, as our store does
    ids = torch.tensor([state.token_ids[: record.kv_len]], device=stepper.runner.device)
    logits = _stock_rows(stock, ids[:, :-1], cache, state)
    yield
    output = stock(input_ids=ids[:, -1:], cache=cache, use_cache=True, output_attentions=True)
    logits = torch.cat([logits, output.logits[0].float().cpu()])
    yield
    checks.append(_drawn_again(state, logits))
    checks.append(_last_logits(stepper, state, record, logits[-1], tolerance))
    checks.append(_attention(stepper, state, record, output.attentions, tolerance))
    checks.append(_row_sums(stepper, state, record))
    checks.append(_kept_sets(stepper, stock, state, record))
    checks.append(_cache_bytes(stepper, state, record, cache))
    return tuple(checks)


def _greedy_ids(stepper: Stepper, stock: PreTrainedModel, state: SessionState) -> Check:
    """Our loop and `generate`, both greedy, from this prompt."""
    count = min(GREEDY_TOKENS, max(1, (stepper.info.context_limit or 1 << 30) - len(state.prompt_ids)))
    store, ours, feed = stepper.runner.new_store(), [], state.prompt_ids
    for _ in range(count):
        row = stepper.runner.forward([Feed(store, feed)]).rows[0].logits[-1]
        ours.append(int(row.argmax()))
        feed = (ours[-1],)
    prompt = torch.tensor([state.prompt_ids], device=stepper.runner.device)
    plain = GenerationConfig(  # type: ignore[no-untyped-call]
        do_sample=False, max_new_tokens=count, eos_token_id=None, pad_token_id=0
    )
    theirs = stock.generate(  # type: ignore[operator]
        prompt, attention_mask=torch.ones_like(prompt), generation_config=plain
    )
    expected = theirs[0, prompt.shape[1] :].tolist()
    differing = sum(a != b for a, b in zip(ours, expected, strict=True))
    return Check(
        "greedy ids",
        f"{count} tokens by this loop and by transformers' generate, from this prompt",
        differing == 0, float(differing), 0.0, "differing ids",
    )  # fmt: skip


def _stock_rows(stock: PreTrainedModel, ids: Tensor, cache: DynamicCache, state: SessionState) -> Tensor:
    """Logits (R, V) of the rows that drew tokens, all but the last, by stock forwards in bounded chunks."""
    first = len(state.prompt_ids) - 1
    rows = [torch.empty(0, stock.config.get_text_config().vocab_size)]
    for start in range(0, ids.shape[1], 256):
        chunk = ids[:, start : start + 256]
        logits = stock(input_ids=chunk, cache=cache, use_cache=True).logits[0].float().cpu()
        rows.append(logits[max(0, first - start) :])
    return torch.cat(rows)


def _drawn_again(state: SessionState, logits: Tensor) -> Check:
    """Every token of this session drawn again, with its own u and settings, from the stock model's scores."""
    wrong = 0
    free = [i for i, chosen in enumerate(state.chosen) if not chosen.forced]
    for step in free:
        context = state.token_ids[: state.length_at(step)]
        chosen = state.chosen[step]
        draw = sample(logits[step], context, chosen.sampling, seed=chosen.seed, step=step).draw
        wrong += draw.token_id != chosen.token_id
    return Check(
        "tokens drawn again",
        f"{len(free)} drawn tokens of this session, from the stock model's scores, same settings and same u",
        wrong == 0, float(wrong), 0.0, "differing ids",
    )  # fmt: skip


def _last_logits(stepper: Stepper, state: SessionState, record: StepRecord, stock_row: Tensor, scale: float) -> Check:
    ours = inspection.logits_at(stepper.runner, state, record.index)
    difference = float((ours - stock_row).abs().max())
    tolerance = LOGIT_TOLERANCE * scale
    return Check(
        "logits",
        f"all {ours.numel():,} scores of step {record.index}, cached here, eager attention there",
        difference <= tolerance, difference, tolerance, "logit",
    )  # fmt: skip


def _attention(
    stepper: Stepper, state: SessionState, record: StepRecord, eager: tuple[Tensor, ...], scale: float
) -> Check:
    ours = torch.from_numpy(inspection.attention_at(stepper.runner, state, record.index))  # (L, H, K)
    theirs = torch.stack([w[0, :, -1].float().cpu() for w in eager])
    difference = float((ours - theirs).abs().max())
    tolerance = ATTENTION_TOLERANCE * scale
    return Check(
        "attention",
        f"{ours.shape[0]} layers x {ours.shape[1]} heads over {ours.shape[2]} keys, against eager attention",
        difference <= tolerance, difference, tolerance, "probability",
    )  # fmt: skip


def _row_sums(stepper: Stepper, state: SessionState, record: StepRecord) -> Check:
    """Rows sum to 1; where the model has sinks, to no more than 1."""
    rows = torch.from_numpy(inspection.attention_at(stepper.runner, state, record.index)).double().sum(-1)
    capture = state.ring.get(record.index)
    has_sink = capture is not None and any(q.sink is not None for q in capture.queries.values())
    off = float((rows - 1).max() if has_sink else (rows - 1).abs().max())
    what = "at most 1, the sink takes the rest" if has_sink else "1"
    return Check(
        "rows of attention",
        f"the sum of each of {rows.numel()} rows against {what}",
        off <= 1e-5, max(0.0, off), 1e-5, "probability",
    )  # fmt: skip


def _kept_sets(stepper: Stepper, stock: PreTrainedModel, state: SessionState, record: StepRecord) -> Check:
    """The tokens each stage kept, against the processors that transformers builds for the same settings."""
    logits = inspection.logits_at(stepper.runner, state, record.index)
    context = state.token_ids[: record.kv_len]
    ours = [scores for _, _, scores in run_stages(logits, context, record.sampling)][1:]
    theirs = _processed(stock, logits, context, record.sampling)
    differing = sum(int((torch.isfinite(a) ^ torch.isfinite(b)).sum()) for a, b in zip(ours, theirs, strict=True))
    return Check(
        "kept tokens",
        f"what {_plural(len(ours), 'active stage')} kept at step {record.index}, against transformers' own processors",
        differing == 0, float(differing), 0.0, "differing tokens",
    )  # fmt: skip


def _plural(count: int, what: str) -> str:
    return f"{count} {what}" if count == 1 else f"{count} {what}s"


def _processed(
    stock: PreTrainedModel, logits: Tensor, context: tuple[int, ...], params: SamplingParams
) -> list[Tensor]:
    """Scores after each processor of `generate`'s own list; greedy ends in a one-hot row."""
    settings: dict[str, Any] = {
        "repetition_penalty": float(params.repetition_penalty),
        "do_sample": not params.is_greedy,
    }
    if not params.is_greedy:
        settings |= {"temperature": float(params.temperature), "top_k": params.top_k, "top_p": float(params.top_p)}
        settings |= {"min_p": params.min_p or None}
    config = GenerationConfig(  # type: ignore[no-untyped-call]
        max_new_tokens=1, eos_token_id=None, pad_token_id=0, **settings
    )
    ids = torch.tensor([context])
    processors = stock._get_logits_processor(  # type: ignore[operator]
        config, input_ids_seq_length=ids.shape[1], device="cpu", model_kwargs={}
    )
    scores, rows = logits[None], []
    for processor in processors:
        scores = processor(ids, scores)
        rows.append(scores[0])
    if params.is_greedy:
        best = torch.full_like(scores[0], -torch.inf)
        best[scores[0].argmax()] = 0.0
        rows.append(best)
    return rows


def _cache_bytes(stepper: Stepper, state: SessionState, record: StepRecord, cache: DynamicCache) -> Check:
    """Formula, our ledger, and transformers' own cache after the same tokens."""
    tensors = [getattr(layer, name) for layer in cache.layers for name in ("keys", "values")]
    theirs = sum(t.nelement() * t.element_size() for t in tensors if t is not None)
    formula = record.kv_len * stepper.info.kv_bytes_per_token
    ledger = state.store.bytes_at(record.kv_len)
    spread = max(theirs, formula, ledger) - min(theirs, formula, ledger)
    return Check(
        "cache bytes",
        f"{record.kv_len} tokens: formula {formula:,} B, our tensors {ledger:,} B, transformers' cache {theirs:,} B",
        spread == 0, float(spread), 0.0, "bytes",
    )  # fmt: skip
