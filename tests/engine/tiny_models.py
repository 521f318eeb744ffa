"""Small real tokenizers, model folders and GGUF files for tests: made in milliseconds, read by the real code."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import gguf
import numpy as np
import torch
from tokenizers import Regex, Tokenizer, decoders, models, normalizers, pre_tokenizers, processors
from transformers import LlamaConfig, LlamaForCausalLM, PreTrainedTokenizerFast

END = "<|im_end|>"
START = "<|im_start|>"
CHATML = (
    "{% for m in messages %}{% if loop.first and m.role != 'system' %}<|im_start|>system\nBe kind.<|im_end|>\n"
    "{% endif %}"
    "<|im_start|>{{ m.role }}\n{{ m.content }}<|im_end|>\n{% endfor %}"
    "{% if add_generation_prompt %}<|im_start|>assistant\n{% endif %}"
)
# Llama 2 style: a start token, and user text trimmed.
INST = "{{ bos_token }}{% for m in messages %}[INST] {{ m.content | trim }} [/INST]{{ eos_token }}{% endfor %}"


def byte_level_tokenizer(*, chat_template: str | None = CHATML) -> PreTrainedTokenizerFast:
    """Byte-level BPE with no start token: 256 bytes, a few merges, three special tokens."""
    letters = sorted(pre_tokenizers.ByteLevel.alphabet())
    merges = [("Ġ", "a"), ("Ġ", "b"), ("Ã", "¡"), ("ð", "Ł"), ("t", "h"), ("th", "e"), ("Ġ", "the"), ("1", "2")]
    spellings = ["<|endoftext|>", START, END, *letters, *("".join(pair) for pair in merges)]
    backend = Tokenizer(models.BPE({s: i for i, s in enumerate(spellings)}, merges))
    backend.pre_tokenizer = pre_tokenizers.Sequence(
        [pre_tokenizers.Digits(individual_digits=True), pre_tokenizers.ByteLevel(add_prefix_space=False)]
    )
    backend.decoder = decoders.ByteLevel()
    stock = PreTrainedTokenizerFast(
        tokenizer_object=backend, bos_token=START, eos_token=END, unk_token="<|endoftext|>", pad_token=END
    )
    stock.chat_template = chat_template
    return stock


def sentencepiece_tokenizer(*, prepend: str = "always", chat_template: str | None = INST) -> PreTrainedTokenizerFast:
    """SentencePiece-style BPE with byte fallback that starts every text with <s>, as Llama 2 does.

    prepend  "always": a space is put before every stretch of text; "first": only at the very start
    """
    byte_tokens = [f"<0x{byte:02X}>" for byte in range(256)]
    letters = [*"abcdehlostINST[]/", "▁"]
    merges = [("▁", "a"), ("▁", "b"), ("l", "l"), ("h", "e"), ("▁", "he")]
    spellings = ["<unk>", "<s>", "</s>", *byte_tokens, *letters, *("".join(pair) for pair in merges)]
    vocabulary = {s: i for i, s in enumerate(spellings)}
    backend = Tokenizer(models.BPE(vocabulary, merges, unk_token="<unk>", fuse_unk=True, byte_fallback=True))
    if prepend == "always":
        backend.normalizer = normalizers.Sequence([normalizers.Prepend("▁"), normalizers.Replace(" ", "▁")])
    else:
        backend.pre_tokenizer = pre_tokenizers.Metaspace(prepend_scheme=prepend, split=False)
    backend.decoder = decoders.Sequence(
        [decoders.Replace("▁", " "), decoders.ByteFallback(), decoders.Fuse(), decoders.Strip(" ", 1, 0)]
    )
    backend.post_processor = processors.TemplateProcessing(single="<s> $A", special_tokens=[("<s>", 1)])
    stock = PreTrainedTokenizerFast(tokenizer_object=backend, bos_token="<s>", eos_token="</s>", unk_token="<unk>")
    stock.chat_template = chat_template
    return stock


def nfc_tokenizer() -> PreTrainedTokenizerFast:
    """Byte-level BPE that composes accents before it splits, as Qwen's does."""
    stock = byte_level_tokenizer()
    stock.backend_tokenizer.normalizer = normalizers.NFC()
    return stock


def split_tokenizer(pattern: str) -> pre_tokenizers.PreTokenizer:
    return pre_tokenizers.Split(Regex(pattern), behavior="isolated")


def tiny_config(**changes: Any) -> LlamaConfig:
    sizes: dict[str, Any] = {
        "vocab_size": 300,
        "hidden_size": 32,
        "intermediate_size": 48,
        "num_hidden_layers": 2,
        "head_dim": 16,
        "num_attention_heads": 4,
        "num_key_value_heads": 2,
        "max_position_embeddings": 64,
        "tie_word_embeddings": True,
        "bos_token_id": 1,
        "eos_token_id": 2,
    }
    return LlamaConfig(**{**sizes, **changes})


def tiny_folder(folder: Path, *, tokenizer: PreTrainedTokenizerFast | None = None, **changes: Any) -> Path:
    """A random two-layer Llama with head_dim 16 (not 32 / 4), saved as transformers saves it."""
    torch.manual_seed(0)
    model = LlamaForCausalLM(tiny_config(**changes))
    model.save_pretrained(folder)
    (tokenizer or byte_level_tokenizer()).save_pretrained(folder)
    return folder


def tiny_gguf(path: Path, *, pre: str = "smollm", quantised: bool = True, **keys: Any) -> Path:
    """A random one-layer llama GGUF file: Q4_1 matrices, F32 norms and embedding.

    keys  eot_token_id, sliding_window, licence; rope_freqs adds that tensor; drop names a tensor to leave out
    """
    width, heads, inner = 64, 4, 96
    writer = gguf.GGUFWriter(path, "llama")
    writer.add_name("Tiny")
    writer.add_license(keys.get("licence", "mit"))
    writer.add_block_count(1)
    writer.add_context_length(128)
    writer.add_embedding_length(width)
    writer.add_feed_forward_length(inner)
    writer.add_head_count(heads)
    writer.add_head_count_kv(2)
    writer.add_layer_norm_rms_eps(1e-5)
    writer.add_rope_dimension_count(width // heads)
    writer.add_rope_freq_base(10_000.0)
    if "sliding_window" in keys:
        writer.add_sliding_window(keys["sliding_window"])
    tokens = _gguf_tokenizer(writer, pre, keys)
    writer.add_vocab_size(tokens)
    random = np.random.default_rng(0)
    shapes = {
        "blk.0.attn_q": (width, width),
        "blk.0.attn_k": (width // 2, width),
        "blk.0.attn_v": (width // 2, width),
        "blk.0.attn_output": (width, width),
        "blk.0.ffn_gate": (inner, width),
        "blk.0.ffn_up": (inner, width),
        "blk.0.ffn_down": (width, inner),
        "token_embd": (tokens, width),
        "blk.0.attn_norm": (width,),
        "blk.0.ffn_norm": (width,),
        "output_norm": (width,),
    }
    for name, shape in shapes.items():
        if name == keys.get("drop"):
            continue
        values = random.normal(size=shape).astype(np.float32)
        if quantised and name.startswith("blk") and len(shape) == 2:
            kind = gguf.GGMLQuantizationType.Q4_1
            writer.add_tensor(f"{name}.weight", gguf.quantize(values, kind), raw_dtype=kind)
        else:
            writer.add_tensor(f"{name}.weight", values)
    if keys.get("rope_freqs"):
        writer.add_tensor("rope_freqs.weight", np.ones(width // heads // 2, dtype=np.float32))
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()
    return path


def _gguf_tokenizer(writer: gguf.GGUFWriter, pre: str, keys: dict[str, Any]) -> int:
    stock = byte_level_tokenizer()
    vocabulary = sorted(stock.get_vocab().items(), key=lambda item: item[1])
    writer.add_tokenizer_model("gpt2")
    writer.add_tokenizer_pre(pre)
    writer.add_token_list([spelling for spelling, _ in vocabulary])
    writer.add_token_types([3 if token_id < 3 else 1 for _, token_id in vocabulary])  # 3: control
    writer.add_token_merges(["Ġ a", "Ġ b", "Ã ¡", "ð Ł", "t h", "th e", "Ġ the", "1 2"])
    writer.add_bos_token_id(1)
    writer.add_eos_token_id(keys.get("eos_token_id", 2))
    if "eot_token_id" in keys:
        writer.add_eot_token_id(keys["eot_token_id"])
    writer.add_chat_template(keys.get("template", CHATML))
    return len(vocabulary)
