"""llama.cpp beside ours, where the package llama-cpp-python is installed: the same float32 weights, a token at a time.

It runs in a process of its own (`python -m benchmarks.llama_cpp FILE THREADS`), so that its threads and PyTorch's are
no part of the same program: each line it reads is one step, and each line it writes is the token it would draw. Outside
its turns the process is stopped: its threads wait for the next step by spinning, on the cores that others then need.
"""

from __future__ import annotations

import signal
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from importlib.util import find_spec
from pathlib import Path

import numpy as np
from gguf import GGUFWriter
from numpy.typing import NDArray
from transformers import PreTrainedModel

from benchmarks.timing import Variant

Floats = NDArray[np.float32]

NAMES = {  # transformers' names of a llama's tensors, and GGUF's
    "model.embed_tokens": "token_embd",
    "model.norm": "output_norm",
    "input_layernorm": "attn_norm",
    "post_attention_layernorm": "ffn_norm",
    "self_attn.q_proj": "attn_q",
    "self_attn.k_proj": "attn_k",
    "self_attn.v_proj": "attn_v",
    "self_attn.o_proj": "attn_output",
    "mlp.gate_proj": "ffn_gate",
    "mlp.up_proj": "ffn_up",
    "mlp.down_proj": "ffn_down",
}


@contextmanager
def llama_steps(
    model: PreTrainedModel, prompt: Sequence[int], token: int, threads: int
) -> Iterator[dict[str, Variant]]:
    """A step of llama.cpp behind `prompt`, by its name; nothing where it is not installed, or has no such model."""
    if find_spec("llama_cpp") is None or model.config.model_type != "llama" or not model.config.tie_word_embeddings:
        yield {}
        return
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "float32.gguf"
        _write(model, file)
        command = [sys.executable, "-m", "benchmarks.llama_cpp", str(file), str(threads), str(token), *map(str, prompt)]
        with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as child:
            assert child.stdin is not None and child.stdout is not None
            asks, answers = child.stdin, child.stdout
            answers.readline()  # it is ready

            def step() -> int:
                asks.write("step\n")
                asks.flush()
                return int(answers.readline())

            child.send_signal(signal.SIGSTOP)
            yield {"llama.cpp": Variant(step, turn=lambda: _awake(child))}
            child.send_signal(signal.SIGCONT)
            asks.close()


@contextmanager
def _awake(child: subprocess.Popen[str]) -> Iterator[None]:
    """It runs while this lasts."""
    child.send_signal(signal.SIGCONT)
    yield
    child.send_signal(signal.SIGSTOP)


def _write(model: PreTrainedModel, file: Path) -> None:
    """The weights as they are, as a GGUF file without a vocabulary."""
    config = model.config
    writer = GGUFWriter(file, "llama")
    writer.add_vocab_size(config.vocab_size)
    writer.add_context_length(config.max_position_embeddings)
    writer.add_embedding_length(config.hidden_size)
    writer.add_block_count(config.num_hidden_layers)
    writer.add_feed_forward_length(config.intermediate_size)
    writer.add_head_count(config.num_attention_heads)
    writer.add_head_count_kv(config.num_key_value_heads)
    writer.add_layer_norm_rms_eps(config.rms_norm_eps)
    writer.add_rope_freq_base(config.rope_parameters["rope_theta"])
    writer.add_rope_dimension_count(config.head_dim)
    writer.add_tokenizer_model("none")
    for name, tensor in model.named_parameters():
        heads = {"q_proj": config.num_attention_heads, "k_proj": config.num_key_value_heads}.get(name.split(".")[-2])
        values = tensor.detach().numpy()  # a copy by PyTorch would give this thread a team of its own
        writer.add_tensor(_name(name), values if heads is None else _pairs_beside(values, heads))
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()


def _pairs_beside(weight: Floats, heads: int) -> Floats:
    """Rows (H D, K) so that the two that are rotated together are neighbours, as llama.cpp rotates them."""
    return weight.reshape(heads, 2, -1, weight.shape[1]).swapaxes(1, 2).reshape(weight.shape)


def _name(name: str) -> str:
    if name.startswith("model.layers."):
        layer, _, rest = name.removeprefix("model.layers.").partition(".")
        return f"blk.{layer}.{NAMES[rest.removesuffix('.weight')]}.weight"
    return f"{NAMES[name.removesuffix('.weight')]}.weight"


def _serve(file: str, threads: int, token: int, *prompt: int) -> None:
    import llama_cpp

    llama = llama_cpp.Llama(file, n_ctx=512, n_threads=threads, n_threads_batch=threads, verbose=False)
    llama.eval(prompt)
    print("ready", flush=True)
    for _ in sys.stdin:
        llama.n_tokens = len(prompt)  # what came after is forgotten
        llama.eval([token])
        logits = np.ctypeslib.as_array(llama_cpp.llama_get_logits_ith(llama.ctx, -1), (llama.n_vocab(),))
        print(int(logits.argmax()), flush=True)


if __name__ == "__main__":
    _serve(sys.argv[1], *(int(number) for number in sys.argv[2:]))
