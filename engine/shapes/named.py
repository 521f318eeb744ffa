"""Models by name, as the sizes their authors published, each with its source.

The config's own words, so that transformers can build the same model from them: the tests count its parameters.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from types import MappingProxyType
from typing import Any

from engine.costs.shape import ModelShape
from engine.shapes.config import from_config


@dataclass(frozen=True)
class NamedShape:
    """A model's sizes, in its config's words, and where they are published."""

    name: str
    config: Mapping[str, Any]
    source: str

    @cached_property
    def shape(self) -> ModelShape:
        return from_config(self.config)


def _gpt2(width: int, layers: int, heads: int, *, context: int = 1024) -> dict[str, Any]:
    return {
        "model_type": "gpt2", "vocab_size": 50_257, "n_positions": context, "n_embd": width, "n_layer": layers,
        "n_head": heads,
    }  # fmt: skip


def _llama(
    width: int, layers: int, heads: int, kv_heads: int, inner: int, *, vocab: int, context: int | None = None,
    tied: bool = False, kind: str = "llama", **more: Any,
) -> dict[str, Any]:  # fmt: skip
    return {
        "model_type": kind, "hidden_size": width, "num_hidden_layers": layers, "num_attention_heads": heads,
        "num_key_value_heads": kv_heads, "intermediate_size": inner, "vocab_size": vocab,
        "tie_word_embeddings": tied, **({"max_position_embeddings": context} if context else {}), **more,
    }  # fmt: skip


def _latent(kind: str, width: int, layers: int, heads: int, inner: int, **more: Any) -> dict[str, Any]:
    return _llama(
        width, layers, heads, heads, inner, kind=kind, kv_lora_rank=512, qk_nope_head_dim=128, qk_rope_head_dim=64,
        v_head_dim=128, **more,
    )  # fmt: skip


LLAMA_2, LLAMA_3, QWEN = 32_000, 128_256, 151_936  # vocabularies

_GPT2_SOURCE = "config.json of openai-community/{} on the Hub; Radford et al. 2019, table 2"
_HUB = "config.json of {} on the Hub"

_ALL = (
    NamedShape("GPT-2", _gpt2(768, 12, 12), _GPT2_SOURCE.format("gpt2")),
    NamedShape("GPT-2 medium", _gpt2(1024, 24, 16), _GPT2_SOURCE.format("gpt2-medium")),
    NamedShape("GPT-2 large", _gpt2(1280, 36, 20), _GPT2_SOURCE.format("gpt2-large")),
    NamedShape("GPT-2 XL", _gpt2(1600, 48, 25), _GPT2_SOURCE.format("gpt2-xl")),
    NamedShape("GPT-3 175B", _gpt2(12_288, 96, 96, context=2048), "Brown et al. 2020, table 2.1 (built like GPT-2)"),
    NamedShape(
        "SmolLM2-135M", _llama(576, 30, 9, 3, 1536, vocab=49_152, context=8192, tied=True),
        _HUB.format("HuggingFaceTB/SmolLM2-135M"),
    ),
    NamedShape(
        "Llama 2 7B", _llama(4096, 32, 32, 32, 11_008, vocab=LLAMA_2, context=4096),
        _HUB.format("meta-llama/Llama-2-7b-hf"),
    ),
    NamedShape(
        "Llama 2 13B", _llama(5120, 40, 40, 40, 13_824, vocab=LLAMA_2, context=4096),
        _HUB.format("meta-llama/Llama-2-13b-hf"),
    ),
    NamedShape(
        "Llama 2 70B", _llama(8192, 80, 64, 8, 28_672, vocab=LLAMA_2, context=4096),
        _HUB.format("meta-llama/Llama-2-70b-hf"),
    ),
    NamedShape(
        "Llama 3.1 8B", _llama(4096, 32, 32, 8, 14_336, vocab=LLAMA_3, context=131_072),
        _HUB.format("meta-llama/Llama-3.1-8B"),
    ),
    NamedShape(
        "Llama 3.1 70B", _llama(8192, 80, 64, 8, 28_672, vocab=LLAMA_3, context=131_072),
        _HUB.format("meta-llama/Llama-3.1-70B"),
    ),
    NamedShape(
        "Llama 3.1 405B", _llama(16_384, 126, 128, 8, 53_248, vocab=LLAMA_3, context=131_072),
        _HUB.format("meta-llama/Llama-3.1-405B"),
    ),
    NamedShape(
        "Llama 3.2 1B", _llama(2048, 16, 32, 8, 8192, vocab=LLAMA_3, context=131_072, tied=True, head_dim=64),
        _HUB.format("meta-llama/Llama-3.2-1B"),
    ),
    NamedShape(
        "Mistral 7B v0.1",
        _llama(4096, 32, 32, 8, 14_336, vocab=32_000, context=32_768, kind="mistral", sliding_window=4096),
        _HUB.format("mistralai/Mistral-7B-v0.1"),
    ),
    NamedShape(
        "Mixtral 8x7B",
        _llama(
            4096, 32, 32, 8, 14_336, vocab=32_000, context=32_768, kind="mixtral", num_local_experts=8,
            num_experts_per_tok=2, sliding_window=None,
        ),
        _HUB.format("mistralai/Mixtral-8x7B-v0.1"),
    ),
    NamedShape(
        "Qwen2.5 0.5B",
        _llama(896, 24, 14, 2, 4864, vocab=QWEN, context=32_768, tied=True, kind="qwen2", use_sliding_window=False),
        _HUB.format("Qwen/Qwen2.5-0.5B"),
    ),
    NamedShape(
        "Qwen3 0.6B", _llama(1024, 28, 16, 8, 3072, vocab=QWEN, context=40_960, tied=True, kind="qwen3", head_dim=128),
        _HUB.format("Qwen/Qwen3-0.6B"),
    ),
    NamedShape(
        "Qwen3 8B", _llama(4096, 36, 32, 8, 12_288, vocab=QWEN, context=40_960, kind="qwen3", head_dim=128),
        _HUB.format("Qwen/Qwen3-8B"),
    ),
    NamedShape(
        "Qwen3 30B-A3B",
        _llama(
            2048, 48, 32, 4, 6144, vocab=QWEN, context=40_960, kind="qwen3_moe", head_dim=128, num_experts=128,
            num_experts_per_tok=8, moe_intermediate_size=768,
        ),
        _HUB.format("Qwen/Qwen3-30B-A3B"),
    ),
    NamedShape(
        "Gemma 2 2B",
        _llama(
            2304, 26, 8, 4, 9216, vocab=256_000, context=8192, tied=True, kind="gemma2", head_dim=256,
            sliding_window=4096,
        ),
        _HUB.format("google/gemma-2-2b"),
    ),
    NamedShape(
        "Gemma 3 1B",
        _llama(
            1152, 26, 4, 1, 6912, vocab=262_144, context=32_768, tied=True, kind="gemma3_text", head_dim=256,
            sliding_window=512,
        ),
        _HUB.format("google/gemma-3-1b-pt"),
    ),
    NamedShape(
        "Falcon 7B",
        {
            "model_type": "falcon", "hidden_size": 4544, "num_hidden_layers": 32, "num_attention_heads": 71,
            "vocab_size": 65_024, "multi_query": True, "parallel_attn": True, "new_decoder_architecture": False,
            "bias": False, "max_position_embeddings": 2048,
        },
        _HUB.format("tiiuae/falcon-7b"),
    ),
    NamedShape(
        "DeepSeek-V2-Lite",
        _latent(
            "deepseek_v2", 2048, 27, 16, 10_944, vocab=102_400, q_lora_rank=None, n_routed_experts=64,
            n_shared_experts=2, num_experts_per_tok=6, moe_intermediate_size=1408, first_k_dense_replace=1,
        ),
        _HUB.format("deepseek-ai/DeepSeek-V2-Lite"),
    ),
    NamedShape(
        "DeepSeek-V2",
        _latent(
            "deepseek_v2", 5120, 60, 128, 12_288, vocab=102_400, q_lora_rank=1536, n_routed_experts=160,
            n_shared_experts=2, num_experts_per_tok=6, moe_intermediate_size=1536, first_k_dense_replace=1,
        ),
        _HUB.format("deepseek-ai/DeepSeek-V2"),
    ),
    NamedShape(
        "DeepSeek-V3",
        _latent(
            "deepseek_v3", 7168, 61, 128, 18_432, vocab=129_280, q_lora_rank=1536, n_routed_experts=256,
            n_shared_experts=1, num_experts_per_tok=8, moe_intermediate_size=2048, first_k_dense_replace=3,
        ),
        _HUB.format("deepseek-ai/DeepSeek-V3") + ", without its multi-token prediction layer",
    ),
)  # fmt: skip

NAMED: MappingProxyType[str, NamedShape] = MappingProxyType({named.name: named for named in _ALL})
