"""A second model object over the same weights, exactly as transformers built it: the oracle of the self-check.

It shares every weight with the model that runs (no second copy in memory), but none of our attention,
cache or kernels: it is what somebody would get who called transformers alone.
"""

from __future__ import annotations

import copy

from torch import nn
from transformers import GenerationConfig, PreTrainedModel


def share_weights(model: PreTrainedModel) -> PreTrainedModel:
    """A structural copy of `model` that refers to the same parameter and buffer tensors."""
    tensors = [*model.parameters(), *model.buffers()]
    twin: PreTrainedModel = copy.deepcopy(model, memo={id(t): t for t in tensors})
    return twin


def follow_weights(twin: PreTrainedModel, model: PreTrainedModel) -> None:
    """Point `twin` at the tensors `model` holds now, after kernels have moved them, and give it eager attention."""
    now = dict(model.named_parameters(remove_duplicate=False))
    for name, _ in list(twin.named_parameters(remove_duplicate=False)):
        parent, _, leaf = name.rpartition(".")
        twin.get_submodule(parent)._parameters[leaf] = _parameter(now[name])
    twin.set_attn_implementation("eager")
    # `generate` merges whatever it finds here into the settings it is given, EOS tokens and temperature included.
    twin.generation_config = GenerationConfig()  # type: ignore[no-untyped-call]


def _parameter(tensor: nn.Parameter) -> nn.Parameter:
    return tensor if isinstance(tensor, nn.Parameter) else nn.Parameter(tensor, requires_grad=False)
