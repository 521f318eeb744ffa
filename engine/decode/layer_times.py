"""Where a step's forward goes, layer by layer: the step is run again with a clock between its layers.

A replay: the token is fed against the cached prefix and nothing is written, so the run goes on as it would have.
Each layer's time is its best of a few replays; asking the device to finish after every layer costs a little, so
the parts add up to more than the step took. Their shares are what to look at.
"""

from __future__ import annotations

from collections.abc import Generator
from contextlib import ExitStack
from dataclasses import dataclass

from torch import nn

from engine.decode.session_state import SessionState
from engine.errors import UnknownStep, UnsupportedModel
from engine.forward.model_runner import ModelRunner
from engine.measure.clocks import now_ms, synchronise

REPLAYS = 8


@dataclass(frozen=True, slots=True)
class LayerTimes:
    """Milliseconds of one step's parts.

    before   the embedding, and what comes before the first layer
    layers   (L) each decoder layer
    head     the last norm and the product that gives the scores
    """

    step: int
    before_ms: float
    layers_ms: tuple[float, ...]
    head_ms: float
    replays: int

    @property
    def total_ms(self) -> float:
        return self.before_ms + sum(self.layers_ms) + self.head_ms


def layer_times(runner: ModelRunner, state: SessionState, step: int) -> Generator[None, None, LayerTimes]:
    """Time the layers of a decode step. Yields between replays, so that others can step. Raises UnknownStep."""
    record = state.require_step(step)
    if record.phase == "prefill":
        raise UnknownStep("Layers are timed for decode steps. Step 0 is the prefill; choose a later one.")
    token_id, position = state.token_ids[record.kv_len - 1], record.kv_len - 1
    layers = decoder_layers(runner)
    parts: list[list[float]] = []
    for _ in range(REPLAYS):
        parts.append(_replay(runner, state, token_id, position, layers))
        yield
    before, *each, head = (min(times) for times in zip(*parts, strict=True))
    return LayerTimes(step, before, tuple(each), head, len(parts))


def decoder_layers(runner: ModelRunner) -> nn.ModuleList:
    """The model's decoder layers, in order."""
    for module in runner.model.modules():
        if isinstance(module, nn.ModuleList) and len(module) == runner.num_layers:
            return module
    raise UnsupportedModel("This model keeps its layers in no list, so they cannot be looked at one by one.")


def _replay(
    runner: ModelRunner, state: SessionState, token_id: int, position: int, layers: nn.ModuleList
) -> list[float]:
    """ms before the first layer, of each layer, and after the last. Others are let in where no part runs."""
    parts: list[float] = []
    began: float | None = None  # None: others are in, and their layers are the same modules

    def mark(*_: object) -> None:
        nonlocal began
        if began is None:
            return
        synchronise(runner.device)
        parts.append(now_ms() - began)
        began = None
        runner.let_others_in()
        began = now_ms()

    with ExitStack() as hooks:
        for layer in layers:
            hooks.callback(layer.register_forward_pre_hook(mark).remove)
        hooks.callback(layers[-1].register_forward_hook(mark).remove)
        synchronise(runner.device)
        began = now_ms()
        runner.replay(state.store, [token_id], position, logit_rows="last", lets_others_in=False)
        mark()
    return parts
