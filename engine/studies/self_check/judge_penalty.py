"""What the repetition penalty did to EOS tokens that were seen before, worked out again."""

from __future__ import annotations

from collections.abc import Sequence

from engine.studies.self_check.findings import Tally
from engine.studies.self_check.judged import Judged
from engine.studies.self_check.scores import PROCESSOR_ROUNDING


def judge_penalised_ends(tally: Tally, judged: Judged, num_prompt: int, end_ids: Sequence[int]) -> None:
    """Which EOS tokens the penalty met, and their logits around it: divided where positive, else multiplied."""
    penalty, ends, name = judged.chosen.sampling.repetition_penalty, judged.record.penalised_ends, judged.name
    met = [token for token in end_ids if penalty != 1 and token in judged.context]
    tally.same(f"{name} EOS tokens that the penalty met", [end.token_id for end in ends], met)
    raw, prompt = judged.raw(), judged.context[:num_prompt]
    for end in ends:
        place = raw.place(end.token_id)
        if place is None:
            continue
        tally.same(f"{name} EOS token {end.token_id} is in the prompt", end.in_prompt, end.token_id in prompt)
        tally.within(f"{name} logit of EOS token {end.token_id}", end.logit, raw.low[place], raw.high[place])
        after = end.logit / penalty if end.logit >= 0 else end.logit * penalty
        hair = PROCESSOR_ROUNDING * (1 + abs(after))
        tally.within(f"{name} penalised EOS token {end.token_id}", end.penalised, after - hair, after + hair)
