"""The probability of every token of a run, prompt and generated, is that of one stock forward pass over all of it."""

from __future__ import annotations

import torch

from engine.config import SamplingParams
from tests.engine.architectures import tiny_engine

PROMPT = tuple(range(10, 22))


def test_a_runs_probabilities_are_those_of_one_stock_forward_pass_in_float64():
    engine = tiny_engine()
    try:
        session = engine.create_session(
            sampling=SamplingParams(temperature=0.7, top_k=20, repetition_penalty=1.2), seed=3
        )
        session.prefill(PROMPT).result()
        session.force(33).result()
        for _ in range(4):
            session.step().result()
        rows = session.prompt_rows().result()
        ids = (*PROMPT, *(record.draw.token_id for record in session.records))
        with torch.no_grad():
            logits = engine.stock(torch.tensor([ids])).logits[0].double()
        expected = logits.log_softmax(-1)[:-1].gather(1, torch.tensor(ids[1:])[:, None])[:, 0]
        prompt = [row.actual_next_prob for row in rows[:-1]]
        generated = [record.draw.raw_prob for record in session.records]
        assert session.records[0].draw.token_id == 33, "a forced token counts with the model's own probability"
        found = torch.tensor([*prompt, *generated], dtype=torch.float64).log()
        assert len(found) == len(ids) - 1 == 16
        torch.testing.assert_close(found, expected, rtol=0, atol=2e-5)
    finally:
        engine.close()
