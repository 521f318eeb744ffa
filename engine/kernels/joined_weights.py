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
    if not parts or not _are_alike(parts):
        return None
    weight = _whole([part.weight for part in parts])
    bias = None if parts[0].bias is None else _whole([part.bias for part in parts])
    if weight is None or (bias is None and parts[0].bias is not None):
        return None
    return Matrix(module, "qkv" if FastAttention.fits(module) else "gate_up", weight, bias)


def _parts(module: Any) -> list[nn.Linear]:
    """The linear modules inside `module` that read the same input; none where its forward is not one we know."""
    if FastAttention.fits(module):
        return [module.q_proj, module.k_proj, module.v_proj]
    if FastMLP.fits(module):
        return [module.gate_proj, module.up_proj]
    return []


def _are_alike(parts: Sequence[nn.Linear]) -> bool:
    """Plain linear modules, all with a bias or all without."""
    return all(type(part) is nn.Linear for part in parts) and len({part.bias is None for part in parts}) == 1


def _whole(parameters: Sequence[Tensor]) -> Tensor | None:
    """One tensor of all `parameters`; None where one of them shares its memory with something else."""
    storages = [p.untyped_storage() for p in parameters]
    sizes = [p.numel() * p.element_size() for p in parameters]
    if all(storage.nbytes() == size for storage, size in zip(storages, sizes, strict=True)):
        return _joined(parameters)
    first = parameters[0].detach()
    ends = [p.data_ptr() + size for p, size in zip(parameters, sizes, strict=True)]
    one_after_another = [p.data_ptr() for p in parameters] == [storages[0].data_ptr(), *ends[:-1]]
    if not one_after_another or storages[0].nbytes() != sum(sizes) or not all(p.is_contiguous() for p in parameters):
        return None
    return first.as_strided((sum(len(p) for p in parameters), *first.shape[1:]), first.stride(), 0)  # (O, K) or (O,)


def _joined(parameters: Sequence[Tensor]) -> Tensor:
    """One tensor of all `parameters`, which become views of it: their old storage is freed."""
    whole = torch.cat([p.detach() for p in parameters])
    start = 0
    for parameter in parameters:
        parameter.data = whole[start : start + len(parameter)]
        start += len(parameter)
    return whole
