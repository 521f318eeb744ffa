"""Weight matrices that read the same input, joined into one: q, k and v, or gate and up.

One wide product reads memory better than three narrow ones. The joined matrix is the only copy: the modules'
parameters become views of it, so names, values, sharing and the sum of bytes stay what they were.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor, nn

from engine.kernels.fast_modules import FastAttention, FastMLP


@dataclass(frozen=True, slots=True, eq=False)
class Matrix:
    """One weight matrix of the model: a linear module's own, or a bundle of several modules'.

    attribute  where the owner's fast forward looks for its product
    weight     (O, K), the storage that the parameters share
    bias       (O,) or None
    """

    owner: nn.Module
    attribute: str
    weight: Tensor
    bias: Tensor | None

    @property
    def shape(self) -> tuple[int, int]:
        return self.weight.shape[0], self.weight.shape[1]


def find_matrices(model: nn.Module) -> list[Matrix]:
    """Every matrix of the model's linear modules, bundled where that is possible. Bundles are made here."""
    bundles = [m for module in model.modules() if (m := _bundled(module)) is not None]
    inside = {id(part) for bundle in bundles for part in _parts(bundle.owner)}
    return [*bundles, *(_single(m) for m in model.modules() if type(m) is nn.Linear and id(m) not in inside)]


def _single(module: nn.Linear) -> Matrix:
    return Matrix(module, "product", module.weight.detach(), None if module.bias is None else module.bias.detach())


def _bundled(module: nn.Module) -> Matrix | None:
    parts = _parts(module)
    if not parts or not _can_join(parts):
        return None
    weight = _joined([part.weight for part in parts])
    bias = None if parts[0].bias is None else _joined([part.bias for part in parts])
    return Matrix(module, "qkv" if FastAttention.fits(module) else "gate_up", weight, bias)


def _parts(module: Any) -> list[nn.Linear]:
    """The linear modules inside `module` that read the same input; none where its forward is not one we know."""
    if FastAttention.fits(module):
        return [module.q_proj, module.k_proj, module.v_proj]
    if FastMLP.fits(module):
        return [module.gate_proj, module.up_proj]
    return []


def _can_join(parts: Sequence[nn.Linear]) -> bool:
    """Plain linear modules, all with a bias or all without, every parameter in storage of its own."""
    if any(type(part) is not nn.Linear for part in parts) or len({part.bias is None for part in parts}) > 1:
        return False
    parameters = [p for part in parts for p in part.parameters()]
    return all(p.untyped_storage().nbytes() == p.numel() * p.element_size() for p in parameters)


def _joined(parameters: Sequence[Tensor]) -> Tensor:
    """One tensor of all `parameters`, which become views of it: their old storage is freed."""
    whole = torch.cat([p.detach() for p in parameters])
    start = 0
    for parameter in parameters:
        parameter.data = whole[start : start + len(parameter)]
        start += len(parameter)
    return whole
