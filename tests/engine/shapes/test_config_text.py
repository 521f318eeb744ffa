"""Whatever is pasted, linked or fetched: a shape, a doubt or a clear refusal comes out of the door, and soon."""

from __future__ import annotations

import json
import random
import time
from typing import Any

import pytest

from engine.costs import ModelShape
from engine.errors import InvalidConfig
from engine.shapes import NAMED, from_config, from_json, parse, read
from engine.shapes.cache_dialects import CACHE_DIALECTS
from engine.shapes.dialects import DIALECTS
from tests.engine.shapes.small_configs import small_config

LLAMA = dict(NAMED["Llama 3.1 8B"].config)
ODD: tuple[Any, ...] = (
    None,
    True,
    False,
    0,
    1,
    -1,
    5,
    2.5,
    1e308,
    float("inf"),
    float("-inf"),
    float("nan"),
    10**40,
    -(10**5000),
    "",
    "x",
    "5",
    "full_attention",
    [],
    [None],
    [5],
    [[1]],
    [1e400],
    ["sliding_attention"] * 8,
    ["linear_attention"] * 8,
    [0, 2, 4],
    [10**5000],
    [True] * 8,
    {},
    {"5": 5},
    {"5": {"head_dim": "x"}},
    {"a": {"b": [1]}},
    {"head_dim": 10**30},
)
NAMES = ("layer_", "head_dim", "0", "5", "x", "num_key_value_heads", "\u202e")
KNOWN = sorted({**DIALECTS, **CACHE_DIALECTS})


def comes_out(config: object) -> ModelShape | str:
    """The shape, with every number that labs show of it, or the words of the refusal. Nothing else comes out."""
    try:
        shape = from_config(config)  # type: ignore[arg-type]
    except InvalidConfig as error:
        return f"{error}"
    assert shape.kv_bytes(1000, 2) >= shape.kv_bytes_per_token(2) > 0
    assert not shape.knows_weights or shape.parameters.total > 0
    return shape


@pytest.mark.parametrize("kind", KNOWN)
def test_every_field_that_is_read_may_have_any_value(kind):
    full = small_config(kind).to_dict()
    for name in read(full).essential:
        for value in ODD:
            comes_out(full | {name: value})


@pytest.mark.parametrize(
    ("config", "words"),
    [
        ({"architectures": 5}, "architectures must be a list of names, got 5"),
        ({"architectures": [5]}, "architectures must be a list of names, got a list of 1"),
        ({"model_type": 5}, "model_type must be a name, got 5"),
        ({"mlp_only_layers": 5, "model_type": "qwen3_moe"}, "mlp_only_layers must be a list of whole numbers, got 5"),
        (
            {"first_k_dense_replace": "x", "model_type": "olmoe"},
            "first_k_dense_replace must be a whole number, got 'x'",
        ),
        ({"vocab_size": 10**5000}, "vocab_size must be between 1 and 10,000,000, got a number of about 5,000 digits"),
        ({"hidden_size": float("inf")}, "hidden_size must be a whole number, got inf"),
        ({"hidden_size": float("nan")}, "hidden_size must be a whole number, got nan"),
        ({"num_hidden_layers": [1, 2]}, "num_hidden_layers must be a whole number, got a list of 2"),
    ],
)
def test_a_wrong_kind_is_refused_by_name(config, words):
    experts = {"num_experts": 8, "num_experts_per_tok": 2, "moe_intermediate_size": 64, "head_dim": 128}
    assert words in str(comes_out(LLAMA | experts | config))


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ('{"vocab_size": 1e400}', "no num_hidden_layers"),
        (json.dumps(LLAMA).replace("128256", "1e400"), "vocab_size must be a whole number, got inf"),
        (json.dumps(LLAMA).replace("128256", "NaN"), "vocab_size must be a whole number, got nan"),
        (json.dumps(LLAMA).replace("128256", "9" * 5000), "is a number of 5,000 digits"),
        ('{"a": ' * 100_000, "nests 100,000 brackets; a config nests at most 32"),
        ("[" * 100_000 + "]" * 100_000, "nests 100,000 brackets"),
        ('{"a": "' + "[" * 1000, "This is not JSON"),
        ("{" + " " * 2_000_000 + "}", "2,000,002 characters; a config has at most 1,000,000"),
        ("3", "got a int"),
        ("null", "got a NoneType"),
        ("\ufeff{}", "This is not JSON"),
        ("\x00", "This is not JSON"),
    ],
)
def test_text_that_no_config_is_is_refused_in_words(text, words):
    with pytest.raises(InvalidConfig) as raised:
        from_json(text)
    assert words in str(raised.value)


def test_brackets_within_text_do_not_nest():
    config = LLAMA | {"comment": "[" * 5000 + '"\\' + "{" * 5000}
    assert from_json(json.dumps(config)) == NAMED["Llama 3.1 8B"].shape


def _anything(source: random.Random, depth: int = 0) -> object:
    kind = source.randrange(8 if depth < 6 else 5)
    if kind == 0:
        return source.choice(ODD)
    if kind == 1:
        return source.choice((1e300, -0.0, 2**31, 4096, 32, 8, 3))
    if kind < 5:
        return "".join(source.choice('ab_"\\{}[]é\u202e\n') for _ in range(source.randrange(12)))
    if kind == 5:
        return [_anything(source, depth + 1) for _ in range(source.randrange(6))]
    return {
        f"{source.choice(NAMES)}{source.randrange(9)}": _anything(source, depth + 1) for _ in range(source.randrange(6))
    }


def test_random_configs_give_a_shape_a_doubt_or_a_refusal():
    source = random.Random(7)
    names = sorted(
        {
            name
            for kind in ("llama", "gemma4_text", "kimi_linear", "deepseek_v32", "llama4_text")
            for name in small_config(kind).to_dict()
        }
    )
    found = set()
    for _ in range(3000):
        config: dict[str, object] = dict(LLAMA) if source.random() < 0.8 else {}
        config["model_type"] = source.choice(KNOWN) if source.random() < 0.9 else _anything(source)
        for _ in range(source.randrange(1, 5)):
            config[source.choice(names)] = _anything(source)
        if source.random() < 0.1:
            config = {"model_type": "wrapper", "text_config": config}
        out = comes_out(config)
        found.add("refused" if isinstance(out, str) else "doubted" if out.doubts else "a shape")
    assert found == {"refused", "doubted", "a shape"}


def test_random_text_is_refused_or_parsed():
    source = random.Random(8)
    whole = json.dumps(LLAMA | {"layer_types": ["full_attention"] * 32})
    for _ in range(2000):
        letters = list(whole)
        for _ in range(source.randrange(1, 6)):
            letters[source.randrange(len(letters))] = source.choice('{}[]",:0e9-. tn\\u')
        try:
            parsed = parse("".join(letters))
        except InvalidConfig:
            continue
        comes_out(parsed)


def test_a_long_config_is_read_in_well_under_a_second():
    config = LLAMA | {f"field_{i}": "x" * 20 for i in range(1800)}
    text = json.dumps(config)
    assert len(text) > 56_000
    start = time.perf_counter()
    assert read(parse(text)).essential.keys() <= LLAMA.keys()
    assert time.perf_counter() - start < 1  # it takes some 20 ms; once per field it took seconds


def test_what_is_kept_of_a_config_gives_the_same_shape_and_the_same_doubts():
    for name, named in NAMED.items():
        config = dict(named.config) | {"hidden_act": "x", "num_kv_shared_layers": 3}
        reading = read(config)
        assert "hidden_act" not in reading.essential
        assert from_config(reading.essential) == reading.shape, name
    inner = {"model_type": "gemma3", "text_config": dict(NAMED["Gemma 3 1B"].config) | {"hidden_act": "x"}, "vision": 1}
    reading = read(inner)
    assert from_config(reading.essential) == reading.shape
    assert set(reading.essential) == {"model_type", "text_config"}
    assert "hidden_act" not in reading.essential["text_config"]
