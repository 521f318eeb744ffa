"""Looking at a step of a session: attention rows, other settings, a token by name. Nothing here moves anything.

Recent steps answer from what was captured; older ones are replayed against the prefix of the cache.
"""

from __future__ import annotations

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from engine.attention import rows_of_layers
from engine.config import SamplingParams
from engine.errors import UnknownStep
from engine.model_runner import ModelRunner
from engine.records import Candidates, Stage, StageProbability
from engine.sampling import probabilities_of, summarise
from engine.session_state import SessionState
from engine.stepping import Stepper


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
    if capture is not None and runner.keys_are_cached and len(capture.queries) == runner.num_layers:
        layers = range(runner.num_layers)
        keys = [state.store.view(layer, record.kv_len)[0] for layer in layers]
        return rows_of_layers([capture.queries[layer] for layer in layers], keys).cpu().numpy()
    last = state.token_ids[record.kv_len - 1]
    everything = frozenset(range(runner.num_layers))
    replayed = runner.replay(state.store, [last], record.kv_len - 1, weights_of=everything)
    return torch.stack([replayed.weights[layer][:, -1] for layer in range(runner.num_layers)]).numpy()


def prompt_attention(runner: ModelRunner, state: SessionState, layer: int, head: int) -> NDArray[np.float32]:
    """Weights (T, T) of one head over the prompt: row = query, column = key. Found by replaying up to `layer`."""
    state.require_step(0)
    if not 0 <= layer < runner.num_layers:
        raise UnknownStep(f"There is no layer {layer}: this model has layers 0 to {runner.num_layers - 1}.")
    replayed = runner.replay(state.store, state.prompt_ids, 0, weights_of=frozenset({layer}))
    weights = replayed.weights[layer]  # (H, T, T)
    if not 0 <= head < weights.shape[0]:
        raise UnknownStep(f"There is no head {head}: this model has heads 0 to {weights.shape[0] - 1}.")
    return weights[head].contiguous().numpy()


def what_if(
    stepper: Stepper, state: SessionState, step: int, sampling: SamplingParams
) -> tuple[Candidates, tuple[Stage, ...]]:
    """The stages of `step` under other settings."""
    logits = logits_at(stepper.runner, state, step)
    context = state.token_ids[: state.length_at(step)]
    return summarise(logits, context, sampling)


def probabilities_at(
    stepper: Stepper, state: SessionState, step: int, token_id: int, sampling: SamplingParams | None
) -> tuple[StageProbability, ...]:
    """One token's probability after every stage of `step`, under its own settings unless others are given."""
    record = state.require_step(step)
    logits = logits_at(stepper.runner, state, step)
    if not 0 <= token_id < logits.numel():
        raise UnknownStep(f"There is no token {token_id}: ids go from 0 to {logits.numel() - 1:,}.")
    context = state.token_ids[: record.kv_len]
    return probabilities_of(token_id, logits, context, sampling or record.sampling)
