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
        said="A model of today gives logits for around 130,000 tokens.",
        because="Llama 3 and DeepSeek-V3 do. Others range from 32,000 to 262,144.",
        formula="V, from each model’s config",
        inputs=fixed(models=("Llama 3.1 8B", "DeepSeek-V3", "Qwen3 0.6B", "Gemma 3 1B", "Mistral 7B v0.1", "GPT-2",
                             "SmolLM2-135M")),
        compute=lambda models: _sizes("vocab_size", "tokens", models), see=See("kv-memory"),
    ),
    Claim(
        id="the-model-does-not-choose", verdict="exact", source=RASCHKA, see=See("step"),
        said="The model gives logits; something else picks the token.",
        because="Picking is a line after the forward pass: an argmax, or sampling. Change the temperature on the "
        "Step page and the logits of the step stay where they are.",
        formula="token = sample(f(ids)); f does no sampling",
    ),
    Claim(
        id="no-memory-between-calls", verdict="conditional", source=RASCHKA, measure="stateless",
        said="The model remembers nothing of an earlier call.",
        because="Its weights do not. With a cache there is something that lasts, and it is handed in and out with each "
        "call; some code keeps it inside the module.",
        formula="f(ids, cache) gives logits and a longer cache, and changes no weight",
    ),
    Claim(
        id="attention-is-the-layer", verdict="conditional", source=PAGED,
        said="A layer is queries against keys, scaled, through a softmax, times the values.",
        because="That is attention, rightly told. It leaves out the mask, the output projection, and the MLP, where "
        "most of the layer’s weights are.",
        formula="MLP / (attention + MLP), parameters of one layer", inputs=fixed(model="Llama 3.1 8B"),
        compute=_mlp_share, see=See("flash-attention"),
    ),
    Claim(
        id="scores-at-every-position", verdict="conditional", source=TRANSFORMERS, measure="logit_rows",
        said="A forward pass returns logits for all positions, and decoding throws away all but the last.",
        because="A plain forward pass does. Libraries can give the last row alone; a cached step has just one.",
        formula="P·V·b against V·b", inputs=fixed(model="Llama 3.1 8B", prompt=2000, score_bytes=4), compute=_rows,
        see=See("step"),
    ),
    Claim(
        id="parallel-over-layers", verdict="wrong", source=ARITHMETIC,
        said="Within a forward pass, the layers work side by side.",
        because="Each layer needs the one below. What runs side by side are the heads, rows and positions inside a "
        "layer; pipelines need several batches under way.",
        formula="layers that follow one another", inputs=fixed(model="Llama 3.1 8B"),
        compute=lambda model: (Number("one after another", shape(model).num_layers, "layers"),),
    ),
    Claim(
        id="one-token-after-another", verdict="conditional", source=LEVIATHAN, see=See("step"),
        said="No token can be had before the one in front of it.",
        because="True for plain decoding. Speculation guesses ahead and lets the large model check many guesses at "
        "once; the check is still needed.",
        formula="a step without drafts yields 1 token",
    ),
    Claim(
        id="a-step-can-be-shared", verdict="exact", source=SCALING_BOOK, measure="shared_step",
        said="Two people’s requests can go through one step.",
        because="The weights are read once for both; only their caches are read apart.",
        formula="weights + B·S·kv, over the same for B = 1",
        inputs=fixed(model="Llama 3.1 8B", cached=4096, weight_bytes=2, kv_bytes=2), compute=_two_in_one,
        see=See("roofline", {"model": "Llama 3.1 8B", "on": "H100 SXM"}),
    ),
)  # fmt: skip

TOPIC = Topic("loop", "The model and the loop", CLAIMS)
