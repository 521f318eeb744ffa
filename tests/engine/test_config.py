"""Settings check themselves, and say the rule, the value and the way out."""

from __future__ import annotations

import math
from dataclasses import FrozenInstanceError

import pytest

from engine.config import MAX_SEED, PRESETS, Budgets, ChosenToken, EngineConfig, Recipe, SamplingParams, StopRules
from engine.errors import InvalidSettings, LoupeError


def test_the_defaults_leave_the_models_distribution_alone() -> None:
    params = SamplingParams()
    assert (params.temperature, params.top_k, params.top_p, params.min_p, params.repetition_penalty) == (1, 0, 1, 0, 1)


@pytest.mark.parametrize(
    ("setting", "value", "message"),
    [
        ("temperature", -0.1, "temperature must be 0 or more, got -0.1. Use 0 for greedy."),
        ("top_k", -1, "top_k must be 0 or more, got -1. Use 0 to switch it off."),
        ("top_p", 1.5, "top_p must be from 0 to 1, got 1.5. Use 1 to switch it off."),
        ("top_p", -0.1, "top_p must be from 0 to 1, got -0.1. Use 1 to switch it off."),
        ("min_p", 2, "min_p must be from 0 to 1, got 2. Use 0 to switch it off."),
        ("repetition_penalty", 0, "repetition_penalty must be above 0, got 0. Use 1 to switch it off."),
        ("top_k", 2.5, "top_k must be a whole number, got 2.5."),
        ("temperature", "1", "temperature must be a finite number, got '1'."),
    ],
)
def test_a_sampling_setting_out_of_range_says_the_rule_the_value_and_the_way_out(
    setting: str, value: object, message: str
) -> None:
    with pytest.raises(InvalidSettings) as caught:
        SamplingParams(**{setting: value})  # type: ignore[arg-type]
    assert str(caught.value) == message


@pytest.mark.parametrize("setting", ["temperature", "top_p", "min_p", "repetition_penalty"])
@pytest.mark.parametrize("value", [math.nan, math.inf, True, None])
def test_what_is_no_finite_number_is_refused(setting: str, value: object) -> None:
    with pytest.raises(InvalidSettings, match="finite number"):
        SamplingParams(**{setting: value})  # type: ignore[arg-type]


def test_edge_values_that_have_a_meaning_are_taken() -> None:
    for params in (
        {"temperature": 0},
        {"temperature": 2},
        {"top_p": 0},
        {"top_p": 1e-8},
        {"top_k": 100_000},
        {"min_p": 1},
    ):
        SamplingParams(**params)  # type: ignore[arg-type]


def test_temperature_0_alone_is_greedy() -> None:
    assert SamplingParams(temperature=0).is_greedy
    assert not SamplingParams(temperature=1e-4).is_greedy


def test_an_explicit_0_of_the_user_is_kept() -> None:
    assert SamplingParams(temperature=0, top_p=0, top_k=0).top_p == 0


def test_presets_are_named_and_frozen() -> None:
    assert PRESETS["greedy"].is_greedy
    assert PRESETS["unmodified (T = 1)"] == SamplingParams()
    with pytest.raises(TypeError):
        PRESETS["greedy"] = SamplingParams()  # type: ignore[index]


@pytest.mark.parametrize(
    ("rules", "message"),
    [
        ({"max_new_tokens": 0}, "max_new_tokens must be 1 or more, got 0."),
        ({"max_new_tokens": 1.5}, "max_new_tokens must be a whole number, got 1.5."),
        ({"max_kv_bytes": -1}, "max_kv_bytes must be 0 or more, got -1. Use 0 for off."),
        ({"stop_strings": (1,)}, "stop_strings must be strings."),
    ],
)
def test_a_stop_rule_out_of_range_says_so(rules: dict[str, object], message: str) -> None:
    with pytest.raises(InvalidSettings) as caught:
        StopRules(**rules)  # type: ignore[arg-type]
    assert str(caught.value) == message


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"model": " "}, "model must name a model"),
        ({"dtype": "int8"}, "dtype 'int8' is not known"),
        ({"device": "tpu"}, "device must be auto, cpu or cuda, got 'tpu'"),
        ({"threads": -1}, "threads must be 0 or more, got -1"),
        ({"prefill_chunk": 0}, "prefill_chunk must be 1 or more, got 0"),
        ({"max_batch": 0}, "max_batch must be 1 or more, got 0"),
        ({"capture_bytes": -1}, "capture_bytes must be 0 or more, got -1"),
        ({"prefix_bytes": -1}, "prefix_bytes must be 0 or more, got -1"),
    ],
)
def test_an_engine_setting_out_of_range_says_so(settings: dict[str, object], message: str) -> None:
    with pytest.raises(InvalidSettings, match=message):
        EngineConfig(**settings)  # type: ignore[arg-type]


def test_a_budget_below_0_says_so() -> None:
    with pytest.raises(InvalidSettings, match=r"kv_bytes must be 0 or more, got -1\. Use 0 for no limit\."):
        Budgets(kv_bytes=-1)


def test_a_budget_caps_the_stop_rules_of_a_session_and_no_limit_leaves_them() -> None:
    asked = StopRules(max_new_tokens=256, max_kv_bytes=0)
    assert Budgets().capped(asked) == asked
    assert Budgets(session_new_tokens=40, session_kv_bytes=9).capped(asked) == StopRules(
        max_new_tokens=40, max_kv_bytes=9
    )
    assert Budgets(session_new_tokens=300, session_kv_bytes=9).capped(StopRules(max_kv_bytes=5)) == StopRules(
        max_new_tokens=256, max_kv_bytes=5
    )


@pytest.mark.parametrize("seed", [-1, MAX_SEED + 1, 1.0, True])
def test_a_seed_is_a_whole_number_that_fits(seed: object) -> None:
    with pytest.raises(InvalidSettings, match="seed must be"):
        Recipe("m", seed=seed)  # type: ignore[arg-type]


def test_a_recipes_tokens_are_its_prompt_and_what_was_chosen() -> None:
    chosen = tuple(ChosenToken(i, forced=False, sampling=SamplingParams()) for i in (7, 8))
    assert Recipe("m", prompt_ids=(1, 2), chosen=chosen).token_ids == (1, 2, 7, 8)


def test_settings_are_values() -> None:
    assert Recipe("m") == Recipe("m")
    with pytest.raises(FrozenInstanceError):
        SamplingParams().temperature = 0.5  # type: ignore[misc]


def test_a_setting_out_of_range_is_an_error_of_ours_and_a_value_error() -> None:
    assert issubclass(InvalidSettings, LoupeError)
    assert issubclass(InvalidSettings, ValueError)
