"""Random models of many architectures, two to six layers each, and a byte tokenizer: the smallest real things."""

from __future__ import annotations

from pathlib import Path
from types import MappingProxyType
from typing import Any

import torch
from tokenizers import Tokenizer as FastTokenizer
from tokenizers import decoders, models, pre_tokenizers
from transformers import AutoConfig, AutoModelForCausalLM, PreTrainedModel, PreTrainedTokenizerFast

from engine.config import EngineConfig
from engine.facts import ModelInfo
from engine.forward.rotary import rope_switch
from engine.llm_engine import LLMEngine
from engine.measure.clocks import unique_bytes
from engine.models.loaded_shape import shape_of
from engine.models.loader import LoadedModel
from engine.text.tokenizer import Tokenizer

SMALL: dict[str, Any] = {
    "vocab_size": 300,
    "hidden_size": 64,
    "intermediate_size": 96,
    "num_hidden_layers": 2,
    "num_attention_heads": 4,
    "num_key_value_heads": 2,
    "max_position_embeddings": 128,
    "pad_token_id": 0,
    "bos_token_id": 1,
    "eos_token_id": 2,
}
GPT2_LIKE: dict[str, Any] = {"vocab_size": 300, "n_embd": 64, "n_layer": 2, "n_head": 4, "n_positions": 128}
OPT_LIKE: dict[str, Any] = {
    "vocab_size": 300,
    "hidden_size": 64,
    "ffn_dim": 96,
    "num_hidden_layers": 2,
    "num_attention_heads": 4,
    "max_position_embeddings": 128,
    "word_embed_proj_dim": 64,
}
MIXED_LAYERS: dict[str, Any] = SMALL | {"head_dim": 16, "query_pre_attn_scalar": 16, "sliding_window": 8}
LATENT: dict[str, Any] = SMALL | {
    "num_key_value_heads": 4,
    "q_lora_rank": 32,
    "kv_lora_rank": 16,
    "qk_nope_head_dim": 16,
    "qk_rope_head_dim": 8,
    "v_head_dim": 16,
    "first_k_dense_replace": 2,
    "n_routed_experts": 4,
    "num_experts_per_tok": 2,
    "n_group": 1,
    "topk_group": 1,
    "moe_intermediate_size": 32,
}
CHUNKED: dict[str, Any] = SMALL | {
    "head_dim": 16,
    "intermediate_size_mlp": 96,
    "num_local_experts": 2,
    "attention_chunk_size": 8,
    "num_hidden_layers": 4,
}

# model_type -> settings, and what makes it worth a place here
ARCHITECTURES: dict[str, dict[str, Any]] = {
    "llama": SMALL,  # grouped queries
    "qwen2": SMALL,  # biases on q, k, v
    "qwen3": SMALL | {"head_dim": 24},  # head width is not hidden / heads; norms on q and k
    "mistral": SMALL | {"sliding_window": 8},
    "mixtral": SMALL | {"num_local_experts": 4},
    "phi": SMALL,  # part of each head is rotated
    "phi3": SMALL | {"sliding_window": 8},
    "gemma": SMALL | {"head_dim": 16, "num_key_value_heads": 1},  # one key head for all queries
    "gemma2": MIXED_LAYERS,  # softcap
    "gemma3_text": MIXED_LAYERS | {"num_hidden_layers": 6},
    "gpt2": GPT2_LIKE,  # learned positions
    "gptj": GPT2_LIKE | {"rotary_dim": 8},
    "gpt_neox": {key: value for key, value in SMALL.items() if key != "num_key_value_heads"},
    "opt": OPT_LIKE,
    "gpt_oss": SMALL | {"head_dim": 16, "num_local_experts": 4, "num_experts_per_tok": 2, "sliding_window": 8},  # sinks
    "olmo2": SMALL,
    "smollm3": SMALL,
    "granite": SMALL,  # scores scaled by a constant of its own
    "stablelm": SMALL,
    "cohere": SMALL,
    "starcoder2": SMALL | {"sliding_window": 8},
    "llama4_text": CHUNKED,  # chunked attention lives in the mask alone
    "deepseek_v3": LATENT,  # a compressed cache, expanded after it is read
}
REFUSED: dict[str, dict[str, Any]] = {  # they compute attention in their own way
    "falcon": {"vocab_size": 300, "hidden_size": 64, "num_hidden_layers": 2, "num_attention_heads": 4},
    "bloom": {"vocab_size": 300, "hidden_size": 64, "n_layer": 2, "n_head": 4},
}


def tiny_model(name: str, *, attention: str = "eager", seed: int = 1, **changes: Any) -> PreTrainedModel:
    """A random model of an architecture; the same seed gives the same weights."""
    config = AutoConfig.for_model(name, **((ARCHITECTURES | REFUSED).get(name, SMALL) | changes))
    torch.manual_seed(seed)
    model = AutoModelForCausalLM.from_config(config, attn_implementation=attention)
    model.requires_grad_(False)
    return model.eval()


def byte_tokenizer() -> PreTrainedTokenizerFast:
    """Ids 3 to 258 are the 256 bytes; 0 to 2 are pad, begin and end."""
    alphabet = sorted(pre_tokenizers.ByteLevel.alphabet())
    vocab = {"<pad>": 0, "<s>": 1, "</s>": 2} | {letter: i + 3 for i, letter in enumerate(alphabet)}
    fast = FastTokenizer(models.BPE(vocab=vocab, merges=[]))
    fast.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    fast.decoder = decoders.ByteLevel()
    return PreTrainedTokenizerFast(tokenizer_object=fast, bos_token="<s>", eos_token="</s>", pad_token="<pad>")


def tiny_llama_folder(folder: Path) -> str:
    """A tiny llama with the byte tokenizer, as transformers saves one."""
    tiny_model("llama").save_pretrained(folder)
    byte_tokenizer().save_pretrained(folder)
    return str(folder)


def loaded(model: PreTrainedModel, *, end_ids: tuple[int, ...] = (), context_limit: int | None = 128) -> LoadedModel:
    """A tiny model as the loader would hand it over."""
    shape = shape_of(model.config)
    size = next(model.parameters()).element_size()
    info = ModelInfo(
        id="tiny",
        name="Tiny",
        architecture=type(model).__name__,
        origin="random weights",
        licence="none",
        folder="",
        dtype="float32",
        device="cpu",
        parameters=sum(p.numel() for p in model.parameters()),
        weight_bytes=unique_bytes(list(model.parameters())),
        num_layers=shape.num_layers,
        num_heads=shape.num_heads,
        num_kv_heads=shape.num_kv_heads,
        head_dim=shape.head_dim,
        vocab_size=shape.vocab_size,
        shape=shape,
        kv_bytes_per_token=shape.kv_bytes_per_token(size),
        context_limit=context_limit,
        end_ids=end_ids,
        has_chat_template=False,
        defaults=MappingProxyType({}),
        rope_switch=rope_switch(model),
    )
    return LoadedModel(info, model, Tokenizer(byte_tokenizer()))


def tiny_engine(name: str = "llama", **changes: Any) -> LLMEngine:
    """An engine over a tiny model. `changes` go to EngineConfig, but for end_ids and context_limit."""
    wanted = {key: changes.pop(key) for key in ("end_ids", "context_limit") if key in changes}
    changes.setdefault("fast_kernels", False)
    return LLMEngine(loaded(tiny_model(name), **wanted), EngineConfig(**changes))
