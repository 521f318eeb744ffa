"""Looking at a step of a session: attention rows, other settings, a token by name. Nothing here moves anything.

Recent steps answer from what was captured; older ones are replayed against the prefix of the cache.
"""

from __future__ import annotations

from collections.abc import Generator, Sequence

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from engine.config import SamplingParams
from engine.decode.sampling import raw_and_final, standings_of, summarise
from engine.decode.session_state import SessionState
from engine.decode.stepping import Stepper
from engine.divergence import Distributions, log_softmax
from engine.errors import PromptTooLong, UnknownHead, UnknownLayer, UnsupportedModel
from engine.forward.forward_pass import LayerQuery
from engine.forward.model_runner import ModelRunner
from engine.progress import OnProgress
from engine.records import Candidates, Stage, TokenStanding
from engine.tiles import HeadInputs

LONGEST_MAP = 4_096  # tokens of a prompt whose map is made: 67 MB of float32
MAP_ROWS = 64  # replayed at a time, so that others step in between


def logits_at(runner: ModelRunner, state: SessionState, step: int) -> Tensor:
    """Logits (V,) that `step` drew from, float32 on CPU."""
    record = state.require_step(step)
    capture = state.ring.get(step)
    if capture is not None:
        return capture.logits
    last = state.token_ids[record.kv_len - 1]
    return runner.replay(state.store, [last], record.kv_len - 1, logit_rows="last").logits[-1]


def attention_at(runner: ModelRunner, state: SessionState, step: int) -> NDArray[np.float32]:
    """Weights (L, H, K) of the last query of `step` over its K keys, float32."""
    record = state.require_step(step)
    capture = state.ring.get(step)
    found = None if capture is None else capture.attention
    if found is None and capture is not None:
        found = runner.rows_of(state.store, capture.queries, record.kv_len)
    if found is not None:
        return found
    last = state.token_ids[record.kv_len - 1]
    everything = frozenset(range(runner.num_layers))
    replayed = runner.replay(state.store, [last], record.kv_len - 1, weights_of=everything)
    return torch.stack([replayed.weights[layer][:, -1] for layer in range(runner.num_layers)]).numpy()


def prompt_attention(
    runner: ModelRunner, state: SessionState, layer: int, head: int, progress: OnProgress
) -> Generator[None, None, NDArray[np.float32]]:
    """Weights (T, T) of one head over the prompt: row = query, column = key. Found by replaying up to `layer`.

    A few rows at a time, and of this head alone: all heads of a long prompt would be gigabytes.
    """
    state.require_step(0)
    _require_layer(runner, layer)
    _require_head(head, runner.num_heads)
    ids = state.prompt_ids
    if len(ids) > LONGEST_MAP:
        raise PromptTooLong(
            f"The prompt is {len(ids):,} tokens; a map of every token over every token is made for up to "
            f"{LONGEST_MAP:,}. Look at single steps, or prefill a shorter prompt."
        )
    whole = np.zeros((len(ids), len(ids)), dtype=np.float32)
    for start in range(0, len(ids), MAP_ROWS):
        part = ids[start : start + MAP_ROWS]
        replayed = runner.replay(state.store, part, start, weights_of=frozenset({layer}), head=head)
        end = start + len(part)
        whole[start:end, :end] = replayed.weights[layer][0].numpy()  # (1, M, K)
        progress(end, len(ids))
        yield
    return whole


def head_inputs(runner: ModelRunner, state: SessionState, step: int, layer: int, head: int) -> HeadInputs:
    """The last query of `step` in one head, with every key and value it read. The step's own numbers, copied.

    Raises UnsupportedModel where the cache holds something else than keys and values.
    """
    record = state.require_step(step)
    _require_layer(runner, layer)
    if not runner.keys_are_cached:
        raise UnsupportedModel(
            "This model caches one compressed vector per token and expands it into keys and values inside each "
            "forward, so the cache holds none to walk over. Choose a model that caches keys and values."
        )
    asked = _query_of(runner, state, step, layer)
    _require_head(head, asked.query.shape[0])
    keys, values = state.store.view(layer, record.kv_len)
    return inputs_of(asked, keys, values, head)


def inputs_of(asked: LayerQuery, keys: Tensor, values: Tensor, head: int) -> HeadInputs:
    """One query head's part of a layer: keys (G, K, D), values (G, K, Dv), copied as float32."""
    group = head // (asked.query.shape[0] // keys.shape[0])
    visible = torch.ones(keys.shape[1], dtype=torch.bool) if asked.mask is None else asked.mask.cpu()
    return HeadInputs(
        query=asked.query[head].float().cpu().numpy().copy(),
        keys=keys[group].float().cpu().numpy().copy(),
        values=values[group].float().cpu().numpy().copy(),
        scaling=asked.scaling,
        softcap=asked.softcap,
        sink=None if asked.sink is None else float(asked.sink[head]),
        visible=visible.numpy().copy(),
    )


def _query_of(runner: ModelRunner, state: SessionState, step: int, layer: int) -> LayerQuery:
    """What one layer asked at `step`: as it was kept, or replayed."""
    capture = state.ring.get(step)
    if capture is not None and layer in capture.queries:
        return capture.queries[layer]
    position = state.length_at(step) - 1
    replayed = runner.replay(state.store, [state.token_ids[position]], position, queries_to=layer)
    return replayed.queries[layer]


def _require_layer(runner: ModelRunner, layer: int) -> None:
    if not 0 <= layer < runner.num_layers:
        raise UnknownLayer(f"There is no layer {layer}: this model has layers 0 to {runner.num_layers - 1}.")


def _require_head(head: int, num_heads: int) -> None:
    if not 0 <= head < num_heads:
        raise UnknownHead(f"There is no head {head}: this model has heads 0 to {num_heads - 1}.")


def what_if(
    stepper: Stepper, state: SessionState, step: int, sampling: SamplingParams
) -> tuple[Candidates, tuple[Stage, ...]]:
    """The stages of `step` under other settings."""
    logits = logits_at(stepper.runner, state, step)
    context = state.token_ids[: state.length_at(step)]
    return summarise(logits, context, sampling)


def standings_at(
    stepper: Stepper, state: SessionState, step: int, token_ids: Sequence[int], sampling: SamplingParams | None
) -> tuple[TokenStanding, ...]:
    """Where tokens stood at `step` among the whole vocabulary, under its own settings unless others are given."""
    record = state.require_step(step)
    logits = logits_at(stepper.runner, state, step)
    context = state.token_ids[: record.kv_len]
    return standings_of(token_ids, logits, context, sampling or record.sampling)


def distributions_at(stepper: Stepper, state: SessionState, step: int) -> Distributions:
    """The whole raw and final distribution of `step`, under the settings that drew it."""
    record = state.require_step(step)
    logits = logits_at(stepper.runner, state, step)
    raw, final = raw_and_final(logits, state.token_ids[: record.kv_len], record.sampling)
    return Distributions(log_softmax(raw), log_softmax(final))
