"""Deep links: a session as a URL and back, and URLs that nobody of us wrote."""

from __future__ import annotations

from typing import Any
from urllib.parse import parse_qs

import pytest

from engine.config import MAX_SEED, ChosenToken, Recipe, SamplingParams, StopRules
from explorer.links.link import Link, Settings, to_query
from explorer.links.read import parse
from explorer.links.write import link_note, link_of
from explorer.workspace.recipe_json import SavedSession

WARM = SamplingParams(0.7, 50, 0.9, 0.123456789012345, 1.1)
HOSTILE = 'a<b & "c" </script><img src=x>\n\t$5 [x](y) `c` *now* 🦊 #?=%20+;:,'


def opened(query: str) -> Link:
    return parse(parse_qs(query.removeprefix("?"), keep_blank_values=True))


def link(**changes: Any) -> Link:
    whole: dict[str, Any] = {
        "prompt": HOSTILE,
        "mode": "chat",
        "model": "Qwen/Qwen3-0.6B",
        "model_name": "Mine",
        "settings": Settings(WARM, MAX_SEED),
        "stop": StopRules(False, 40, ("\n\n", "a&b"), 0),
        "steps": 9,
        "forced": {3: 253, 7: 12},
        "history": {0: Settings(), 5: Settings(SamplingParams(temperature=1e-8), 3)},
        "step": 4,
        "layer": 11,
        "head": 2,
        "fed": "0123abcd",
    }
    return Link(**{**whole, **changes})


def test_a_link_comes_back_whole():
    assert opened(to_query(link())) == link()


def test_a_link_to_nothing_is_empty():
    assert to_query(Link()) == ""
    assert opened("") == Link()
    assert opened("").is_empty


def test_defaults_are_left_out():
    assert to_query(Link(prompt="The cat sat", steps=0)) == "?prompt=The%20cat%20sat&steps=0"


def test_a_hand_written_step_also_says_how_far_to_go():
    assert opened("?prompt=The+cat&step=5").steps == 5
    assert opened("?prompt=The+cat").steps is None


def test_a_long_prompt_stays_out_and_takes_its_tokens_with_it():
    query = to_query(link(prompt="x" * 2001))
    assert "prompt" not in query and "forced" not in query and "steps" not in query and "history" not in query
    assert opened(query).settings == Settings(WARM, MAX_SEED)
    assert "prompt" in to_query(link(prompt="x" * 2000))
    assert "prompt" not in to_query(link(prompt="鰻" * 1000))  # 9 characters each once encoded


@pytest.mark.parametrize(
    ("query", "words"),
    [
        ("temperature=hot", "temperature must be a number"),
        ("temperature=-1", "temperature must be 0 or more"),
        ("temperature=nan", "finite"),
        ("top_k=2.5", "whole number"),
        ("top_p=7", "top_p must be from 0 to 1"),
        ("penalty=0", "repetition_penalty must be above 0"),
        ("seed=-3", "seed must be a whole number"),
        ("seed=9223372036854775808", "seed must be from 0"),
        ("mode=shout", "mode must be raw or chat"),
        ("max_new=0", "max_new_tokens"),
        ("max_new=many", "max_new must be a whole number"),
        ("end_ids=maybe", "end_ids must be a whole number"),
        ("steps=99999999999999999999999", "steps must be from 0"),
        ("steps=²", "steps must be a whole number"),
        ("forced=3", "forced must be a whole number"),
        ("forced=a:b,,", "forced must be a whole number"),
        ("history=5:1,0,1,0,1,0", "history must begin at step 0"),
        ("history=0:1,0,1", "history must hold entries"),
        ("fed=today", "fed must be 8 hexadecimal digits"),
        ("history=0:1,0,1,0,1,x", "seed must be a whole number"),
        ("layer=-1", "layer must be a whole number"),
        ("stop=" + "y" * 300, "stop rules"),
    ],
)
def test_what_cannot_be_read_is_said_and_falls_back(query, words):
    found = opened(f"?prompt=Hi&{query}")
    assert found.prompt == "Hi"
    assert len(found.notes) == 1
    assert words in found.notes[0]
    assert found == Link(prompt="Hi", notes=found.notes)


def test_one_bad_value_leaves_the_others():
    found = opened("?prompt=Hi&temperature=0.5&top_p=7&seed=4")
    assert found.settings == Settings(SamplingParams(temperature=0.5), 4)


def test_a_note_never_repeats_a_huge_value():
    assert len(opened("?temperature=" + "9" * 100_000 + "x").notes[0]) < 300


# --- from a session -------------------------------------------------------------------------------------------


def session(*chosen: ChosenToken, seed: int = 0, **changes: Any) -> SavedSession:
    recipe = Recipe("m", (1, 2), chosen, changes.pop("sampling", SamplingParams()), StopRules(), seed)
    return SavedSession(recipe, changes.pop("prompt", "Hi"), "raw", ("prompt", "prompt"))


def plain(token_id: int = 5) -> ChosenToken:
    return ChosenToken(token_id, False, SamplingParams())


def test_a_link_lists_steps_and_forced_tokens_but_not_what_was_drawn():
    made = link_of(session(plain(), ChosenToken(9, True, SamplingParams()), plain()), None, 3, 1)
    assert (made.steps, dict(made.forced), dict(made.history)) == (2, {1: 9}, {})
    assert to_query(made) == "?prompt=Hi&steps=2&forced=1:9&layer=3&head=1"


def test_settings_changed_on_the_way_become_a_history():
    made = link_of(session(plain(), plain(), ChosenToken(5, False, WARM), sampling=WARM), None, None, None)
    assert dict(made.history) == {0: Settings(), 2: Settings(WARM)}
    assert made.settings == Settings(WARM)


def test_settings_changed_after_the_last_step_need_a_history_too():
    made = link_of(session(plain(), plain(), sampling=WARM), None, None, None)
    assert dict(made.history) == {0: Settings()}
    assert made.settings == Settings(WARM)


def test_a_seed_changed_on_the_way_is_kept_for_the_steps_it_drew():
    made = link_of(
        session(*(ChosenToken(5, False, SamplingParams(), seed) for seed in (7, 7, 8)), seed=8), None, None, None
    )
    assert {step: s.seed for step, s in made.history.items()} == {0: 7, 2: 8}
    assert made.settings.seed == 8


@pytest.mark.parametrize("path", ["/home/me/model", "./m", "C:\\m", "q4.gguf"])
def test_a_servers_path_never_gets_into_a_link_but_the_models_name_does(path):
    made = link_of(session(plain()), path, None, None, name="My model")
    assert (made.model, made.model_name) == (None, "My model")
    assert to_query(made) == "?prompt=Hi&model_name=My%20model&steps=0"
    assert opened(to_query(made)).model_name == "My model"
    assert "file or folder on this machine" in (link_note(session(plain()), path) or "")


def test_a_model_that_can_be_had_anywhere_is_named_to_be_loaded():
    made = link_of(session(plain()), "Qwen/Qwen3-0.6B", None, None, name="Qwen3-0.6B")
    assert (made.model, made.model_name) == ("Qwen/Qwen3-0.6B", None)


def test_a_link_that_cannot_carry_the_prompt_says_why():
    assert "2,001 characters" in (link_note(session(plain(), prompt="x" * 2001), None) or "")
    assert link_note(session(plain(), prompt=None), None) is not None
    assert link_note(session(plain()), None) is None
