"""A loaded model in numbers: what budgets, stop rules and pages go by."""

from __future__ import annotations

from dataclasses import dataclass
from types import MappingProxyType
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from engine.costs.shape import ModelShape


@dataclass(frozen=True, slots=True)
class ModelInfo:
    """A loaded model in numbers.

    origin              where the weights come from, in words: "dequantised from Q4_1"
    parameters          unique ones: a tied embedding counts once
    kv_bytes_per_token  what one token adds to the cache over all layers, by formula
    shape               its sizes, for the cost model
    context_limit       tokens the model was made for; None where the config does not say
    rope_switch         tokens at which its rotary embeddings change; None where they do not
    defaults            the model's own generation_config, shown and applied only when asked for
    """

    id: str
    name: str
    architecture: str
    origin: str
    licence: str
    folder: str
    dtype: str
    device: str
    parameters: int
    weight_bytes: int
    num_layers: int
    num_heads: int
    num_kv_heads: int
    head_dim: int
    vocab_size: int
    shape: ModelShape
    kv_bytes_per_token: int
    context_limit: int | None
    end_ids: tuple[int, ...]
    has_chat_template: bool
    defaults: MappingProxyType[str, object]
    notes: tuple[str, ...] = ()  # doubts found while importing, in words
    rope_switch: int | None = None

    def limit_for(self, prompt_tokens: int) -> int | None:
        """Tokens that a session with such a prompt may hold; see forward/rotary.py for the switch."""
        if self.rope_switch is not None and prompt_tokens <= self.rope_switch:
            return min(self.rope_switch, self.context_limit or self.rope_switch)
        return self.context_limit
