"""What the explorer's tests share: a tiny random llama in a real engine, and the browser's side of the wire."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
import torch
from tokenizers import Tokenizer, decoders, models, pre_tokenizers
from transformers import LlamaConfig, LlamaForCausalLM, PreTrainedTokenizerFast

from engine.config import EngineConfig
from explorer.engines.pool import EnginePool
from explorer.hosting import runtime
from explorer.hosting.leases import Registry
from explorer.hosting.runtime import Runtime
from tests.explorer.page_client import LOOP, Page

CHAT = "{% for m in messages %}<|im_start|>{{ m.role }}\n{{ m.content }}<|im_end|>\n{% endfor %}<|im_start|>assistant\n"


def tiny_llama(folder: Path, seed: int = 0) -> Path:
    """Two layers, four heads on two KV heads, one token per byte, as transformers saves it."""
    specials = ["<|endoftext|>", "<|im_start|>", "<|im_end|>"]
    letters = sorted(pre_tokenizers.ByteLevel.alphabet())
    backend = Tokenizer(models.BPE({s: i for i, s in enumerate([*specials, *letters])}, []))
    backend.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    backend.decoder = decoders.ByteLevel()
    stock = PreTrainedTokenizerFast(tokenizer_object=backend, bos_token=specials[1], eos_token=specials[2])
    stock.chat_template = CHAT
    torch.manual_seed(seed)
    config = LlamaConfig(
        vocab_size=len(specials) + len(letters),
        hidden_size=32,
        intermediate_size=48,
        num_hidden_layers=2,
        head_dim=16,
        num_attention_heads=4,
        num_key_value_heads=2,
        max_position_embeddings=1024,
        bos_token_id=1,
        eos_token_id=2,
    )
    LlamaForCausalLM(config).save_pretrained(folder)
    stock.save_pretrained(folder)
    return folder


@pytest.fixture(scope="session")
def tiny_folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tiny_llama(tmp_path_factory.mktemp("tiny"))


@pytest.fixture(scope="session")
def other_folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tiny_llama(tmp_path_factory.mktemp("other"), seed=1)


@pytest.fixture(scope="session")
def config(tiny_folder: Path) -> EngineConfig:
    return EngineConfig(
        model=str(tiny_folder), device="cpu", dtype="float32", threads=1, prefill_chunk=16, fast_kernels=False
    )


@pytest.fixture(scope="session")
def pool(config: EngineConfig) -> Iterator[EnginePool]:
    made = EnginePool(config)
    made.request().future.result(timeout=120)
    yield made
    made.close()


@pytest.fixture(autouse=True)
def event_loop(monkeypatch: pytest.MonkeyPatch) -> None:
    """Where no server has started, tabs live on a loop of the tests."""
    made = runtime._made

    def with_loop() -> Runtime:
        there = made()
        there.loop = LOOP
        return there

    monkeypatch.setattr(runtime, "_made", with_loop)


@pytest.fixture
def app_server(tiny_folder: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """The app's own runtime on the tiny model, made by the first page that asks for it and closed afterwards."""
    runtime.close()
    monkeypatch.setenv("LOUPE_MODEL", str(tiny_folder))
    yield
    runtime.close()


@pytest.fixture
def server(pool: EnginePool) -> Runtime:
    return Runtime(pool, Registry())


@pytest.fixture
def page(server: Runtime) -> Page:
    return Page(server)


@pytest.fixture
def run(page: Page) -> Page:
    """A run of 4 steps with a forced token and a changed seed."""
    page.ok("settings", sampling={"temperature": 0.9}, seed=4)
    page.ok("prefill", prompt="ab🦊", mode="chat")
    page.ok("step")
    page.ok("force", step=1, token_id=77)
    page.ok("settings", seed=9, sampling={"temperature": 0.4})
    page.ok("step")
    page.ok("step")
    return page


@pytest.fixture
def own_server(config: EngineConfig) -> Iterator[Runtime]:
    """A server whose models nobody else uses."""
    server = Runtime(EnginePool(config, keep_unused_s=0), Registry())
    loading = server.pool.request()
    loading.future.result(timeout=60)
    server.pool.leave(loading)
    yield server
    server.pool.close()
