"""Long work in short pieces: prefill a prompt, rebuild a session from its recipe, read the prompt's rows.

Each function here is a generator that yields between forwards, so the engine can serve everybody's
decode steps in between and a pasted essay never freezes a class.
"""

from __future__ import annotations

from collections.abc import Generator, Sequence
from dataclasses import dataclass, replace

import torch
from torch import Tensor

from engine.config import Recipe
from engine.decode.session_state import SessionState
from engine.decode.stepping import ForwardFacts, Stepper
from engine.errors import EmptyPrompt, PromptTooLong, UnknownToken
from engine.facts import ModelInfo
from engine.forward.capture import Capture, CaptureRing
from engine.forward.kv_store import KVStore
from engine.forward.model_runner import Feed, ModelRunner
from engine.measure.clocks import OwnTime
from engine.progress import OnProgress
from engine.records import PromptRow, StepRecord
from engine.tokens import EncodedPrompt, Role

ROWS_AT_ONCE = 64  # rows of logits held at a time: 64 x 49,152 x 4 B = 12.6 MB
ROWS_PER_PAUSE = 16  # rows read until others are let in: some 10 ms
RECORDS_AT_ONCE = 8  # made again in one piece: some 20 ms
TOP = 10  # likeliest tokens kept of each prompt row


@dataclass(frozen=True, slots=True)
class Fed:
    """A store that holds all tokens given to `feed`, the last row, and what it took.

    forward_ms     of all forwards together, and how many there were
    paused_ms      others took between their layers
    reused_tokens  of the tokens held, those that no forward of this feed has run
    """

    store: KVStore
    row: Capture
    forward_ms: float = 0.0
    paused_ms: float = 0.0
    forwards: int = 0
    reused_tokens: int = 0


def require_prompt(
    prompt_ids: Sequence[int], info: ModelInfo, most_kv_bytes: int = 0, *, began_with: int | None = None
) -> None:
    """Raise where a prompt cannot be run; `most_kv_bytes` is what a session may hold, 0 for no limit.

    began_with  where a whole run is fed at once: how many of the tokens were its prompt
    """
    began_with = len(prompt_ids) if began_with is None else began_with
    limit = info.limit_for(began_with)
    if not prompt_ids:
        raise EmptyPrompt("The prompt is empty: the model needs at least one token to run on. Type something.")
    if began_with == info.rope_switch:
        raise PromptTooLong(
            f"The prompt is {began_with:,} tokens, where {info.name} changes its rotary embeddings, so it could "
            "not be continued. Add or remove a token."
        )
    if limit is not None and len(prompt_ids) >= limit:
        over = len(prompt_ids) - limit + 1
        raise PromptTooLong(
            f"The prompt is {len(prompt_ids):,} tokens; {info.name} reads {limit:,} and needs room for one more. "
            f"Shorten it by {over:,} token{'s' if over > 1 else ''}."
        )
    if most_kv_bytes and len(prompt_ids) * info.kv_bytes_per_token > most_kv_bytes:
        most = most_kv_bytes // info.kv_bytes_per_token
        raise PromptTooLong(
            f"The prompt is {len(prompt_ids):,} tokens; a session may hold {most:,} on this machine. Shorten it."
        )
    unknown = [i for i in prompt_ids if not 0 <= i < info.vocab_size]
    if unknown:
        raise UnknownToken(f"Token id {unknown[0]} is outside {info.name}'s vocabulary of {info.vocab_size:,}.")


def feed(
    runner: ModelRunner, store: KVStore, token_ids: Sequence[int], chunk: int, progress: OnProgress
) -> Generator[None, None, Fed]:
    """Make `store` hold `token_ids`, at most `chunk` of them per forward; what it holds of them is not run."""
    reused, spent, paused, forwards = store.length, 0.0, 0.0, 0
    if reused == 0:
        store.prompt_length = len(token_ids)
    for start in range(reused, len(token_ids), chunk):
        part = tuple(token_ids[start : start + chunk])
        is_last = start + chunk >= len(token_ids)
        result = runner.forward([Feed(store, part)], logit_rows="last" if is_last else "none")
        spent, paused, forwards = spent + result.forward_ms, paused + result.paused_ms, forwards + 1
        progress(start + len(part), len(token_ids))
        if not is_last:
            yield
    row = result.rows[0]
    return Fed(store, Capture(row.logits[-1], row.queries), spent, paused, forwards, reused)


def feed_prompt(
    stepper: Stepper,
    state: SessionState,
    prompt_ids: tuple[int, ...],
    chunk: int,
    progress: OnProgress,
    afresh: bool = False,
) -> Generator[None, None, Fed]:
    """A new store for `state`, fed; what another session has prefilled, or is prefilling just now, is copied.

    `afresh`: every token is read by forward passes of this session's own, and nothing is shared.
    """
    if afresh:
        state.incoming = stepper.runner.new_store()
        return (yield from feed(stepper.runner, state.incoming, prompt_ids, chunk, progress))
    prefixes = stepper.prefixes
    while prefixes.is_filling(prompt_ids):
        progress(0, len(prompt_ids))  # raises where somebody has given up
        yield
    known = prefixes.find(prompt_ids)
    if known is not None:
        progress(len(prompt_ids), len(prompt_ids))
        state.incoming = known.store.fork(len(prompt_ids))
        return Fed(state.incoming, known.row, reused_tokens=len(prompt_ids))
    with prefixes.filling(prompt_ids):
        limit = stepper.info.limit_for(len(prompt_ids))
        shared = prefixes.fork_common(prompt_ids, chunk, lambda known: stepper.info.limit_for(len(known)) == limit)
        state.incoming = shared or stepper.runner.new_store()
        state.incoming.prompt_length = len(prompt_ids)
        fed = yield from feed(stepper.runner, state.incoming, prompt_ids, chunk, progress)
        prefixes.put(prompt_ids, fed.store, fed.row)
    return fed


def prefill(
    stepper: Stepper,
    state: SessionState,
    prompt: EncodedPrompt,
    *,
    asked_ms: float,
    chunk: int,
    progress: OnProgress,
    afresh: bool = False,
) -> Generator[None, None, StepRecord]:
    """Put a new prompt in place of whatever `state` holds, and draw its first token."""
    require_prompt(prompt.ids, stepper.info, stepper.most_kv_bytes)
    own = OwnTime()
    with state.filling():
        fed = yield from own.over(feed_prompt(stepper, state, prompt.ids, chunk, progress, afresh))
        fresh = _fresh(state, fed.store, prompt.ids, prompt.roles)
        rows, own_ms = min(1, fed.forwards), own.ms - fed.paused_ms
        facts = ForwardFacts(prompt.ids, rows, 1, asked_ms, own_ms, fed.forward_ms, fed.reused_tokens, fed.forwards)
        record = stepper.record(fresh, fed.row, facts)  # may raise
        state.become(fresh)
    return record


def _fresh(state: SessionState, store: KVStore, prompt_ids: tuple[int, ...], roles: Sequence[Role]) -> SessionState:
    """A session of its own over `store`, with the settings of `state`: work on it, then `become` it, or drop it."""
    ring = CaptureRing(state.ring.budget)
    return replace(
        state,
        store=store,
        ring=ring,
        prompt_ids=prompt_ids,
        prompt_roles=tuple(roles),
        chosen=[],
        records=[],
        stopped=None,
        rebuilt_tokens=0,
        recovered_tokens=0,
        incoming=None,
    )


def rebuild(
    stepper: Stepper, state: SessionState, recipe: Recipe, roles: Sequence[Role], *, chunk: int, progress: OnProgress
) -> Generator[None, None, None]:
    """Fill `state` from a recipe: the cache by prefilling, the records from the rows that come out."""
    if not recipe.prompt_ids:
        return
    fed = recipe.token_ids[:-1] or recipe.prompt_ids
    require_prompt(fed, stepper.info, stepper.most_kv_bytes, began_with=len(recipe.prompt_ids))
    with state.filling():
        prompt = yield from feed_prompt(stepper, state, recipe.prompt_ids, chunk, progress)
        fresh = _fresh(state, prompt.store, recipe.prompt_ids, roles)
        fresh.stop = recipe.stop
        rows = min(1, prompt.forwards)
        facts = ForwardFacts(recipe.prompt_ids, rows, 1, None, 0.0, 0.0, prompt.reused_tokens, prompt.forwards)
        _redo(stepper, fresh, recipe, facts, prompt.row.logits)
        yield from _redo_continuation(stepper, fresh, recipe, progress)
        fresh.sampling, fresh.seed = recipe.sampling, recipe.seed
        state.become(fresh)


def _redo_continuation(
    stepper: Stepper, fresh: SessionState, recipe: Recipe, progress: OnProgress
) -> Generator[None, None, None]:
    """Feed what a recipe has chosen, many tokens a forward; one record for each row that comes out."""
    for start in range(0, len(recipe.chosen) - 1, ROWS_AT_ONCE):
        part = tuple(c.token_id for c in recipe.chosen[start : min(start + ROWS_AT_ONCE, len(recipe.chosen) - 1)])
        rows = stepper.runner.forward([Feed(fresh.store, part)], logit_rows="all").rows[0].logits
        for done, (token_id, row) in enumerate(zip(part, rows, strict=True), start=1):
            _redo(stepper, fresh, recipe, ForwardFacts((token_id,), 1, 1, None, 0.0, 0.0), row)
            if done % RECORDS_AT_ONCE == 0 or done == len(part):
                progress(len(recipe.prompt_ids) + start + done, len(recipe.token_ids) - 1)
                yield


def _redo(stepper: Stepper, fresh: SessionState, recipe: Recipe, facts: ForwardFacts, logits: Tensor) -> None:
    """One record again, with the token and the settings that the recipe has for it."""
    step = len(fresh.records)
    recalled = recipe.chosen[step] if step < len(recipe.chosen) else None  # a bare prompt gets its first token
    settings = recipe if recalled is None else recalled
    fresh.sampling, fresh.seed = settings.sampling, settings.seed
    stepper.record(fresh, Capture(logits, {}), facts, recalled)


def restore_cache(
    stepper: Stepper, state: SessionState, *, chunk: int, progress: OnProgress
) -> Generator[None, None, None]:
    """Fill a released cache again, the prompt from where others share it, if they do; the records are still there."""
    ids = state.token_ids[:-1]
    with state.filling():
        fed = yield from feed_prompt(stepper, state, state.prompt_ids, chunk, progress)
        if len(ids) > len(state.prompt_ids):
            yield from feed(stepper.runner, fed.store, ids, chunk, progress)
        state.store = fed.store
    state.rebuilt_tokens += len(ids) - fed.reused_tokens
    state.recovered_tokens += fed.reused_tokens


def prompt_rows(
    runner: ModelRunner, state: SessionState, progress: OnProgress
) -> Generator[None, None, tuple[PromptRow, ...]]:
    """What the model would have said after each prompt token, by replaying the prompt."""
    ids = state.prompt_ids
    rows: list[PromptRow] = []
    for start in range(0, len(ids), ROWS_AT_ONCE):
        part = ids[start : start + ROWS_AT_ONCE]
        logits = runner.replay(state.store, part, start, logit_rows="all").logits  # (M, V)
        for offset, row in enumerate(logits):
            if offset % ROWS_PER_PAUSE == 0:
                runner.let_others_in()
            rows.append(_prompt_row(row.double().softmax(-1), start + offset, ids))
        progress(len(rows), len(ids))
        yield
    return tuple(rows)


def _prompt_row(probs: Tensor, position: int, ids: tuple[int, ...]) -> PromptRow:
    top = torch.topk(probs, min(TOP, probs.numel()))
    following = ids[position + 1] if position + 1 < len(ids) else None
    return PromptRow(
        position=position,
        top_ids=top.indices.int().numpy(),
        top_probs=top.values.numpy(),
        actual_next_id=following,
        actual_next_prob=None if following is None else float(probs[following]),
    )
