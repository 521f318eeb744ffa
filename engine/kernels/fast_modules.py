"""Modules of a transformers model that compute the same with fewer, wider operations.

Each is mixed into the module's own class (`adopt`), so weights, names and isinstance stay, and taking the old
class back undoes it. Which modules qualify is not a list of architectures: a module qualifies where its
forward is, instruction for instruction, one that is rewritten here. An architecture that differs in one
factor is another program and is left alone.

Letters in shapes: B sessions, M tokens fed, H query heads, G key-value heads, D head width.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor, nn
from transformers.models.llama import modeling_llama as llama
from transformers.models.mistral.modeling_mistral import MistralAttention
from transformers.models.qwen2.modeling_qwen2 import Qwen2Attention
from transformers.models.qwen3.modeling_qwen3 import Qwen3Attention

from engine.kernels.layer_inputs import LayerInputs, SharedInputs
from engine.kernels.linear import Product
from engine.kernels.row_path import RowLayer

Program = Callable[..., Any]


def same_program(function: Program, reference: Program) -> bool:
    """Whether two functions, decorators apart, consist of the same instructions on the same names and constants."""
    first, second = inspect.unwrap(function).__code__, inspect.unwrap(reference).__code__
    return _facts(first) == _facts(second)


def _facts(code: Any) -> tuple[object, ...]:
    first, rest = code.co_consts[:1], code.co_consts[1:]
    constants = rest if first and isinstance(first[0], str) else code.co_consts  # a docstring is no instruction
    return code.co_code, code.co_names, code.co_varnames, repr(constants)


def adopt(module: nn.Module, mixin: type[nn.Module]) -> None:
    """Give `module` the forward of `mixin`, in front of its own class."""
    own = type(module)
    fast = type(f"Fast{own.__name__}", (mixin, own), {"__module__": __name__})
    setattr(fast, "forward", mixin.forward)  # noqa: B010  # some of transformers' classes wrap the forward of every subclass
    module.__class__ = fast


def abandon(module: nn.Module) -> None:
    """Undo `adopt`."""
    module.__class__ = type(module).__mro__[2]


class FastLinear(nn.Module):
    """nn.Linear through the kernel that is fastest for its number of rows."""

    product: Product

    def forward(self, input: Tensor) -> Tensor:  # noqa: A002  # nn.Linear's own name
        return self.product(input)


class FastNorm(nn.Module):
    """Root mean square norm of one row: a norm and two products, instead of six operations."""

    scale: Tensor  # (K,) the weight, as a plain tensor
    variance_epsilon: float

    @staticmethod
    def fits(module: nn.Module) -> bool:
        return same_program(type(module).forward, llama.LlamaRMSNorm.forward)

    @staticmethod
    def prepare(module: Any) -> None:
        """Note the weight where no lookup through nn.Module is needed."""
        module.scale = module.weight.detach()

    def forward(self, hidden_states: Tensor) -> Tensor:
        width = self.scale.shape[0]
        if hidden_states.numel() != width:
            rows: Tensor = super().forward(hidden_states)
            return rows
        norm = float(torch.linalg.vector_norm(hidden_states))
        shrink: float = (norm * norm / width + self.variance_epsilon) ** -0.5
        return (hidden_states * shrink).mul_(self.scale)


class FastMLP(nn.Module):
    """A gated MLP whose gate and up projections are one product."""

    gate_up: Product
    act_fn: nn.Module
    down_proj: nn.Module

    @staticmethod
    def fits(module: nn.Module) -> bool:
        return same_program(type(module).forward, llama.LlamaMLP.forward)

    def forward(self, x: Tensor) -> Tensor:
        gate, up = self.gate_up(x).chunk(2, dim=-1)
        down: Tensor = self.down_proj(self.act_fn(gate) * up)
        return down


def _no_window(_: Any) -> dict[str, object]:
    return {}


def _config_window(module: Any) -> dict[str, object]:
    return {"sliding_window": getattr(module.config, "sliding_window", None)}


def _own_window(module: Any) -> dict[str, object]:
    return {"sliding_window": module.sliding_window}


# Programs of attention that are rewritten below; they differ in what they tell the attention function of a window.
ATTENTION_PROGRAMS: tuple[tuple[Program, bool, Callable[[Any], dict[str, object]]], ...] = (
    (llama.LlamaAttention.forward, False, _no_window),
    (MistralAttention.forward, False, _config_window),
    (Qwen2Attention.forward, False, _own_window),
    (Qwen3Attention.forward, True, _own_window),
)


class FastAttention(nn.Module):
    """Attention whose q, k and v are one product, and whose q and k are rotated together.

    heads       (H, G)
    head_norms  whether q and k are normalised per head first
    extra       what this program passes on to the attention function besides the usual
    """

    qkv: Product
    shared: SharedInputs
    heads: tuple[int, int]
    head_norms: bool
    extra: dict[str, object]
    eager: Program
    layer_idx: int
    head_dim: int
    scaling: float
    o_proj: nn.Module
    q_norm: nn.Module
    k_norm: nn.Module

    @staticmethod
    def fits(module: nn.Module) -> bool:
        return FastAttention.program(module) is not None and _rotates_like_llama(type(module).forward)

    @staticmethod
    def program(module: nn.Module) -> tuple[Program, bool, Callable[[Any], dict[str, object]]] | None:
        """The entry of ATTENTION_PROGRAMS that this module's forward is."""
        return next((p for p in ATTENTION_PROGRAMS if same_program(type(module).forward, p[0])), None)

    @staticmethod
    def prepare(module: Any, shared: SharedInputs) -> None:
        """Note on `module` what its fast forward needs, while its own forward is still in place."""
        program = FastAttention.program(module)
        assert program is not None, "prepare a module that fits"
        module.shared, module.head_norms, module.extra = shared, program[1], program[2](module)
        module.heads = (module.q_proj.out_features // module.head_dim, module.k_proj.out_features // module.head_dim)
        module.eager = inspect.unwrap(type(module).forward).__globals__["eager_attention_forward"]

    def forward(
        self,
        hidden_states: Tensor,
        position_embeddings: tuple[Tensor, Tensor],
        attention_mask: Tensor | None = None,
        cache: Any = None,
        **kwargs: Any,
    ) -> tuple[Tensor, Tensor | None]:
        num_heads, num_kv_heads = self.heads
        rows = hidden_states.shape[:-1]  # (B, M)
        inputs = self.shared.of(self, position_embeddings)
        mixed = self.qkv(hidden_states).view(*rows, num_heads + 2 * num_kv_heads, self.head_dim)
        query, key = self._turned(mixed, inputs)
        value = mixed[:, :, num_heads + num_kv_heads :].transpose(1, 2)  # (B, G, M, D)
        output, weights = self.look(inputs, query, key, value, attention_mask, cache, kwargs)
        return self.o_proj(output.reshape(*rows, -1)), weights

    def look(
        self,
        inputs: LayerInputs,
        query: Tensor,
        key: Tensor,
        value: Tensor,
        mask: Tensor | None,
        cache: Any,
        kwargs: dict[str, Any],
    ) -> tuple[Tensor, Tensor | None]:
        """Put key and value (B, G, M, D) into the cache and attend with query (B, H, M, D): (B, M, H, D), weights."""
        if cache is not None:
            key, value = cache.update(key, value, self.layer_idx, kwargs=kwargs)
        return inputs.attend(self, query, key, value, mask, dropout=0.0, scaling=self.scaling, **self.extra, **kwargs)

    def _turned(self, mixed: Tensor, inputs: LayerInputs) -> tuple[Tensor, Tensor]:
        """Query (B, H, M, D) and key (B, G, M, D) after rotation, from mixed (B, M, H + 2G, D)."""
        num_heads, num_kv_heads = self.heads
        if self.head_norms:
            query, key = self.q_norm(mixed[:, :, :num_heads]), self.k_norm(mixed[:, :, num_heads:-num_kv_heads])
            return inputs.turn(query.transpose(1, 2)), inputs.turn(key.transpose(1, 2))
        both = inputs.turn(mixed[:, :, :-num_kv_heads].transpose(1, 2))
        return both[:, :num_heads], both[:, num_heads:]


class FastLayer(nn.Module):
    """A decoder layer without the wrappers that only training and old argument names need.

    row  the layer's shorter way for one row, where all its parts have a fast forward
    """

    row: RowLayer | None = None
    input_layernorm: nn.Module
    self_attn: nn.Module
    post_attention_layernorm: nn.Module
    mlp: nn.Module

    @staticmethod
    def fits(module: nn.Module) -> bool:
        return same_program(type(module).forward, llama.LlamaDecoderLayer.forward)

    def forward(self, hidden_states: Tensor, **kwargs: Any) -> Tensor:
        if self.row is not None and self.row.takes(hidden_states, kwargs.get("cache")):
            return self.row.run(hidden_states, **kwargs)
        attended, _ = self.self_attn(self.input_layernorm(hidden_states), **kwargs)
        hidden_states = hidden_states + attended
        fed: Tensor = self.mlp(self.post_attention_layernorm(hidden_states))
        return hidden_states + fed


def _rotates_like_llama(forward: Program) -> bool:
    rope = inspect.unwrap(forward).__globals__.get("apply_rotary_pos_emb")
    return rope is not None and same_program(rope, llama.apply_rotary_pos_emb)
