"""A start loads what it needs and no more, and what it left out is there for whoever asks for it later."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from tests.engine.architectures import tiny_llama_folder

ROOT = Path(__file__).resolve().parents[2]

STARTED = """
import gc, json, sys
from engine.config import EngineConfig
from engine.starting import start
engine = start(EngineConfig(model=sys.argv[1], device="cpu"))
session = engine.create_session()
session.prefill((5, 6, 7)).result()
session.step().result()
left_out = [name for name in ("torch._dynamo", "sympy", "torch.distributed.tensor") if name in sys.modules]
frozen, collects = gc.get_freeze_count(), gc.isenabled()
engine.close()
import torch
from transformers.integrations import flex_attention
compiled = torch.compile(torch.neg, backend="eager")(torch.ones(2)).tolist()
print(json.dumps([left_out, frozen, collects, compiled, "torch._dynamo" in sys.modules]))
"""


@pytest.fixture(scope="module")
def seen(tmp_path_factory):
    """What a fresh Python found after it had started an engine, stepped it, and then compiled something."""
    folder = tiny_llama_folder(tmp_path_factory.mktemp("tiny"))
    command = [sys.executable, "-W", "ignore", "-c", STARTED, folder]
    found = subprocess.run(command, cwd=ROOT, check=True, capture_output=True, text=True)
    return json.loads(found.stdout)


def test_no_compiler_and_no_distributed_part_is_loaded_for_a_step(seen):
    assert seen[0] == []


def test_what_a_start_made_is_left_out_of_later_collections(seen):
    assert seen[1] > 100_000
    assert seen[2]


def test_the_real_compiler_is_there_for_whoever_asks_later(seen):
    assert seen[3:] == [[-1.0, -1.0], True]
