"""Rotary embeddings whose factors depend on how long a text is: "longrope", as Phi-3 has it.

transformers picks the short or the long factors by the longest position of a forward pass. Here a forward pass may be a
chunk of a prompt, or hold sessions of many lengths, so the longest position says nothing about a row. What decides
is what `generate` would have fed first: the session's prompt. A prompt that is longer than the switch gets the long
factors in all its rows, in whatever chunks and beside whomever it is fed.

Where decoding passes the switch, every cached key would have to be made again, and with it all that was shown of
the steps before. So a session that begins below the switch ends there (`ModelInfo.limit_for`).
Dynamic NTK scaling changes only beyond the model's context limit, which no session passes.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import torch
from torch import Tensor, nn

from engine.errors import UnsupportedModel
from engine.forward.forward_pass import current_pass

LONGROPE = "longrope"
Rotary = Callable[..., Any]


def rope_switch(model: nn.Module) -> int | None:
    """Tokens up to which the short factors hold; None where no rotary embedding depends on the length."""
    found = {switch for _, switch in _switching(model)}
    if len(found) > 1:
        raise UnsupportedModel(
            f"The layers of this {type(model).__name__} change their rotary embeddings at different lengths "
            f"({', '.join(map(str, sorted(found)))}), which Loupe does not follow. Choose another model."
        )
    return next(iter(found), None)


def follow_prompts(model: nn.Module) -> None:
    """Let every rotary embedding of `model` that depends on the length go by each session's prompt."""
    for module, switch in list(_switching(model)):
        if not isinstance(module.forward, _ByPrompt):
            module.forward = _ByPrompt(module.forward, switch)


def _switching(model: nn.Module) -> Iterator[tuple[nn.Module, int]]:
    for module in model.modules():
        kinds, config = getattr(module, "rope_type", None), getattr(module, "config", None)
        parameters: Any = getattr(config, "rope_parameters", None)
        if kinds == LONGROPE:
            yield module, int(parameters["original_max_position_embeddings"])
        elif isinstance(kinds, dict):  # one set of factors for each kind of layer
            for layer_type in (name for name, kind in kinds.items() if kind == LONGROPE):
                yield module, int(parameters[layer_type]["original_max_position_embeddings"])


class _ByPrompt:
    """A rotary embedding's forward with each row's factors chosen by the length of that row's prompt."""

    def __init__(self, stock: Rotary, switch: int) -> None:
        self._stock = stock
        self._switch = switch

    def __call__(self, x: Tensor, position_ids: Tensor, *args: Any, **kwargs: Any) -> Any:
        """cos and sin, (B, M, D) each, for positions (B, M)."""
        rows = [store.prompt_length > self._switch for store in current_pass().stores]
        if not any(rows):
            return self._stock(x, position_ids, *args, **kwargs)
        longest = position_ids.new_full((*position_ids.shape[:-1], 1), self._switch)  # one more token: the long factors
        padded = self._stock(x, torch.cat([position_ids, longest], -1), *args, **kwargs)
        long = tuple(part[..., :-1, :] for part in padded)
        if all(rows):
            return long
        is_long = torch.tensor(rows, device=x.device)[:, None, None]
        short = self._stock(x, torch.where(is_long[..., 0], 0, position_ids), *args, **kwargs)
        return tuple(torch.where(is_long, *both) for both in zip(long, short, strict=True))
