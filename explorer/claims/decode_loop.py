"""Claims about the model and the loop around it."""

from __future__ import annotations

from engine.costs.bytes import step_bytes
from explorer.claims.claim import Claim, Number, See, Topic, fixed, shape
from explorer.claims.sources import ARITHMETIC, LEVIATHAN, LLAMA_CARD, PAGED, RASCHKA, SCALING_BOOK, TRANSFORMERS

BODY = "logits = model(ids)\nrow = logits[-1]\ntoken = sample(row)\nids.append(token)"


def _sizes(what: str, unit: str, models: tuple[str, ...]) -> tuple[Number, ...]:
    return tuple(Number(name, getattr(shape(name), what), unit) for name in models)


def _mlp_share(model: str) -> tuple[Number, ...]:
    counted = shape(model).parameters
    layer = counted.attention_per_layer + counted.mlp_per_layer
    return (Number("of a layer’s matrices, in the MLP", counted.mlp_per_layer / layer),)


def _rows(model: str, prompt: int, score_bytes: int) -> tuple[Number, ...]:
    row = shape(model).vocab_size * score_bytes
    return Number("every row", prompt * row, "B"), Number("the last row", row, "B")


def _out_of_the_model(model: str) -> tuple[Number, ...]:
    return Number("given for the next token", shape(model).vocab_size, "logits"), Number("picked", 0, "tokens")


def _two_in_one(model: str, cached: int, weight_bytes: float, kv_bytes: float) -> tuple[Number, ...]:
    one, two = (
        step_bytes(shape(model), cached, batch=b, weight_dtype_bytes=weight_bytes, kv_dtype_bytes=kv_bytes)
        for b in (1, 2)
    )
    return Number("one alone moves", one, "B"), Number("two together, over one", two / one, "×")


CLAIMS = (
    Claim(
        id="scores-for-the-whole-vocabulary", verdict="exact", source=LLAMA_CARD, measure="logit_rows",
        said="For each position, the model gives a logit to every token it knows.",
        because="That is what the last matrix is: one row per entry of the vocabulary.",
        formula="logits per position = V", inputs=fixed(models=("Llama 3.1 8B",)),
        compute=lambda models: _sizes("vocab_size", "logits", models),
    ),
    Claim(
        id="about-130000-scores", verdict="conditional", source=ARITHMETIC,
        said="Today’s models have a vocabulary of about 130,000 tokens.",
        because="Llama 3 and DeepSeek-V3 do. Others range from 32,000 to 262,144.",
        formula="V, from each model’s config",
        inputs=fixed(models=("Llama 3.1 8B", "DeepSeek-V3", "Qwen3 0.6B", "Gemma 3 1B", "Mistral 7B v0.1", "GPT-2",
                             "SmolLM2-135M")),
        compute=lambda models: _sizes("vocab_size", "tokens", models), see=See("kv-memory"),
    ),
    Claim(
        id="the-model-does-not-choose", verdict="exact", source=RASCHKA, see=See("step"),
        said="The model gives logits; something else picks the token.",
        because="Picking is a line of code after the forward pass: an argmax, or sampling. Change the temperature on "
        "the Step page, and the logits of the step stay the same.",
        formula="token = sample(f(ids)); f gives V logits", inputs=fixed(model="Llama 3.1 8B"),
        compute=_out_of_the_model,
    ),
    Claim(
        id="no-memory-between-calls", verdict="conditional", source=RASCHKA, measure="stateless",
        said="The model remembers nothing of an earlier call.",
        because="Its weights do not change. A KV cache does last, but it is passed in and out with each call; some "
        "code keeps it inside the module.",
        formula="f(ids, cache) gives logits and a longer cache, and changes no weight",
    ),
    Claim(
        id="attention-is-the-layer", verdict="conditional", source=PAGED,
        said="A layer compares queries with keys, scales, applies softmax, and multiplies by the values.",
        because="That describes attention correctly. It leaves out the mask, the output projection, and the MLP, "
        "which holds most of the layer’s weights.",
        formula="MLP / (attention + MLP), parameters of one layer", inputs=fixed(model="Llama 3.1 8B"),
        compute=_mlp_share, see=See("flash-attention"),
    ),
    Claim(
        id="scores-at-every-position", verdict="conditional", source=TRANSFORMERS, measure="logit_rows",
        said="A forward pass returns logits for all positions, and decoding throws away all but the last.",
        because="A plain forward pass does. Libraries can return only the last row, and a cached step computes just "
        "one.",
        formula="P·V·b against V·b", inputs=fixed(model="Llama 3.1 8B", prompt=2000, score_bytes=4), compute=_rows,
        see=See("step"),
    ),
    Claim(
        id="parallel-over-layers", verdict="wrong", source=ARITHMETIC,
        said="Within a forward pass, the layers run in parallel.",
        because="Each layer needs the output of the one below. What runs in parallel are the heads, rows and "
        "positions inside a layer. Pipeline parallelism needs several batches in flight.",
        formula="layers that follow one another", inputs=fixed(model="Llama 3.1 8B"),
        compute=lambda model: (Number("one after another", shape(model).num_layers, "layers"),),
    ),
    Claim(
        id="one-token-after-another", verdict="conditional", source=LEVIATHAN, see=See("step"),
        said="No token can be generated before the one in front of it.",
        because="True for plain decoding. Speculative decoding drafts several tokens ahead and lets the large model "
        "check them in one pass; the check is still needed.",
        formula="a step without drafts yields 1 token",
    ),
    Claim(
        id="a-step-can-be-shared", verdict="exact", source=SCALING_BOOK, measure="shared_step",
        said="Two people’s requests can share one step.",
        because="The weights are read once for both; each cache is read separately.",
        formula="weights + B·S·kv, over the same for B = 1",
        inputs=fixed(model="Llama 3.1 8B", cached=4096, weight_bytes=2, kv_bytes=2), compute=_two_in_one,
        see=See("roofline", {"model": "Llama 3.1 8B", "on": "H100 SXM"}),
    ),
)  # fmt: skip

TOPIC = Topic("loop", "The model and the loop", CLAIMS)
