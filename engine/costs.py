"""What a model's shape costs, by formula: no torch, no weights, milliseconds for any size.

The measured numbers are held against these. The one that most calculators get wrong is the cache: it has
key-value heads, not query heads, and a head width of its own.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True, slots=True)
class ModelShape:
    """The sizes of a decoder that its cache depends on.

    latent_width  for multi-head latent attention: what one token caches per layer, compressed
                  (kv_lora_rank + qk_rope_head_dim); 0 where keys and values are cached as they are
    """

    num_layers: int
    num_heads: int
    num_kv_heads: int
    head_dim: int
    vocab_size: int
    latent_width: int = 0

    @classmethod
    def from_config(cls, config: Any) -> ModelShape:
        """Read a transformers config (its text part)."""
        text = config.get_text_config()
        num_heads = int(text.num_attention_heads)
        head_dim = getattr(text, "head_dim", None) or text.hidden_size // num_heads
        rank = getattr(text, "kv_lora_rank", None)
        return cls(
            num_layers=int(text.num_hidden_layers),
            num_heads=num_heads,
            num_kv_heads=int(getattr(text, "num_key_value_heads", None) or num_heads),
            head_dim=int(head_dim),
            vocab_size=int(text.vocab_size),
            latent_width=int(rank + text.qk_rope_head_dim) if rank else 0,
        )

    def kv_bytes_per_token(self, dtype_bytes: int) -> int:
        """Bytes one token adds to the cache, over all layers."""
        if self.latent_width:
            return self.num_layers * self.latent_width * dtype_bytes  # one latent serves as key and value
        return 2 * self.num_layers * self.num_kv_heads * self.head_dim * dtype_bytes  # 2: one key, one value
