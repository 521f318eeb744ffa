"""The values that a lesson's text can name: each is a field of a live record, computed on the page when it is read.

The page's side, which makes them: assets/step_page/lessons/fields.js.
"""

from __future__ import annotations

STEP = {
    "number": "the step’s number; 0 is the prefill",
    "token": "the token that it sampled",
    "token_id": "that token’s id",
    "in": "the tokens that were fed",
    "in_count": "how many were fed",
    "in_id": "the id of the last one fed",
    "position": "the position of the last one fed",
    "kv_len": "columns in the KV cache after it",
    "kv_bytes": "bytes in the KV cache after it",
    "probability": "the sampled token’s probability after all stages",
    "raw_probability": "its probability before any stage",
    "rank": "its rank by logit, 1 is the likeliest",
    "u": "the random number of the draw",
    "kept": "tokens that the stages kept",
    "entropy": "bits of entropy after the stages",
    "raw_entropy": "bits of entropy before them",
    "likeliest": "the likeliest token, before any stage",
    "likeliest_probability": "its probability, before any stage",
    "second": "the second likeliest token",
    "second_probability": "its probability",
    "third": "the third likeliest token",
    "third_probability": "its probability",
    "final_likeliest_probability": "the likeliest token’s probability after all stages",
    "surprisal": "bits: how little the model expected the sampled token",
    "forward_ms": "time of the forward pass",
    "sample_ms": "time of sampling and stop rules",
    "total_ms": "time of the whole step",
    "per_token_ms": "time of the forward pass per token read",
    "bound_ms": "the lower bound from this machine’s bandwidth, once it was measured",
    "times_bound": "how many times that bound the forward pass took",
    "read_bytes": "bytes of weights and cache that the step reads",
    "batch": "sessions that shared the forward pass",
    "stop": "why the run ended here",
    "text": "the text up to the token that it sampled",
    "pending": "bytes of a character that is not complete yet",
    "held": "text that is held back because a stop string may be completing",
}
LOOK = {
    "layer": "the chosen layer",
    "head": "the chosen query head",
    "kv_head": "the KV head that it reads",
    "most_read": "the token that the head read most",
    "most_read_weight": "the weight on it",
    "first_weight": "the weight on the first token",
}
MODEL = {
    "name": "the running model’s name",
    "layers": "its layers",
    "heads": "its query heads in a layer",
    "kv_heads": "its KV heads in a layer",
    "head_dim": "numbers in a head’s vector",
    "vocabulary": "tokens it knows",
    "parameters": "its parameters",
    "weight_bytes": "bytes of its weights",
    "kv_bytes_per_token": "bytes that a token adds to the cache",
    "context": "tokens it can hold",
    "dtype": "the number format it runs in",
    "eos_ids": "the ids of its EOS tokens",
}
RUN = {
    "text": "the whole text so far",
    "tokens": "tokens so far",
    "prompt_tokens": "tokens of the prompt",
    "steps": "decode steps so far",
    "seed": "the seed",
    "temperature": "the temperature for the next step",
    "top_k": "top-k for the next step",
    "top_p": "top-p for the next step",
    "min_p": "min-p for the next step",
    "penalty": "the repetition penalty for the next step",
    "max_new_tokens": "the limit on new tokens",
    "branches": "runs in this tab that share a beginning",
}
GUESS = {
    "token": "the token that was typed, as the model has it",
    "rank": "its rank by logit in the step that came",
    "probability": "its probability in that step, before any stage",
}
MACHINE = {"bandwidth": "bytes a second that this machine reads, once it was measured"}

GROUPS = {
    "step": ("the scene’s own step: where it begins, and once it is complete where it ends", STEP),
    "before": ("the step before that", STEP),
    "prefill": ("step 0", STEP),
    "look": ("the step that is looked at now", {**STEP, **LOOK}),
    "model": ("the model that runs", MODEL),
    "run": ("the run on screen", RUN),
    "machine": ("the machine", MACHINE),
    "guess": ("the token that was typed", GUESS),
}
FIELDS = {f"{group}.{name}": said for group, (_, names) in GROUPS.items() for name, said in names.items()}

_TEXTS = {
    *("token", "in", "likeliest", "second", "third", "stop", "text", "pending", "held", "most_read"),
    *("name", "dtype", "eos_ids", "bandwidth"),
}  # fmt: skip


def is_number(name: str) -> bool:
    """Whether a known value can be the answer of a number question; the others are read as text."""
    return name.split(".")[1] not in _TEXTS
