"""Our stages and draw against transformers itself: the processors `generate` builds, and `generate`."""

from __future__ import annotations

from functools import cache
from typing import Any

import pytest
import torch
from torch import Tensor
from transformers import AutoConfig, AutoModelForCausalLM, GenerationConfig

from engine.config import SamplingParams
from engine.decode.sampling import run_stages, sample

NEW_TOKENS = 16
CASES = {
    "everything on": SamplingParams(temperature=0.8, top_k=40, top_p=0.9, min_p=0.02, repetition_penalty=1.3),
    "top-p alone": SamplingParams(top_p=0.7),
    "min-p alone": SamplingParams(min_p=0.3),
    "hot": SamplingParams(temperature=3.0, top_k=400),
    "rewarding repetition": SamplingParams(repetition_penalty=0.6, temperature=0.5),
    "unmodified (T = 1)": SamplingParams(),
    "greedy with penalty": SamplingParams(temperature=0, repetition_penalty=1.8, top_k=3, top_p=0.1),
}


@cache
def tiny_llama() -> Any:
    torch.manual_seed(1)
    config = AutoConfig.for_model(
        "llama",
        vocab_size=512,
        hidden_size=64,
        intermediate_size=96,
        num_hidden_layers=2,
        num_attention_heads=4,
        num_key_value_heads=2,
        max_position_embeddings=256,
        pad_token_id=0,
        bos_token_id=1,
        eos_token_id=None,
        initializer_range=0.2,
    )
    return AutoModelForCausalLM.from_config(config).eval()  # type: ignore[no-untyped-call]


def prompt_ids() -> Tensor:
    return torch.randint(3, 512, (1, 12), generator=torch.Generator().manual_seed(5))


def generated(params: SamplingParams, seed: int) -> Any:
    settings = GenerationConfig(  # type: ignore[no-untyped-call]
        do_sample=not params.is_greedy,
        temperature=float(params.temperature) if not params.is_greedy else None,
        top_k=params.top_k if not params.is_greedy else None,
        top_p=params.top_p if not params.is_greedy else None,
        min_p=params.min_p or None,
        repetition_penalty=params.repetition_penalty,
        max_new_tokens=NEW_TOKENS,
        pad_token_id=0,
        return_dict_in_generate=True,
        output_scores=True,
        output_logits=True,
    )
    ids, model = prompt_ids(), tiny_llama()
    torch.manual_seed(seed)  # the last thing before: building the model draws too
    return model.generate(ids, attention_mask=torch.ones_like(ids), generation_config=settings)


@pytest.mark.parametrize("params", CASES.values(), ids=CASES.keys())
@pytest.mark.parametrize("seed", [7, 8])
def test_our_loop_draws_the_ids_that_generate_draws(params: SamplingParams, seed: int) -> None:
    theirs = generated(params, seed).sequences[0].tolist()
    ids = prompt_ids()[0].tolist()
    generator = torch.Generator().manual_seed(seed)
    for step in range(NEW_TOKENS):
        with torch.no_grad():
            logits = tiny_llama()(input_ids=torch.tensor([ids]), use_cache=False).logits[0, -1]
        ids.append(sample(logits, ids, params, seed=0, step=step, generator=generator).draw.token_id)
    assert ids == theirs


@pytest.mark.parametrize("params", CASES.values(), ids=CASES.keys())
def test_our_last_stage_scores_equal_the_scores_generate_reports(params: SamplingParams) -> None:
    run = generated(params, seed=3)
    for step in range(NEW_TOKENS):
        context = run.sequences[0, : 12 + step].tolist()
        name, _, scores = run_stages(run.logits[step][0], context, params)[-1]
        if name == "greedy":
            assert int(scores.argmax()) == int(run.scores[step][0].argmax())
        else:
            assert torch.equal(scores, run.scores[step][0])
