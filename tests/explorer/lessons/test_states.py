"""Where the run is in each scene, worked out from the acts alone and held against the same by hand."""

from __future__ import annotations

import pytest

from engine.config import SamplingParams
from explorer.lessons.actions import parse_action
from explorer.lessons.payload import lesson_json
from explorer.lessons.reading import read_lesson
from explorer.lessons.states import scene_states

HEAD = "---\ntitle: t\nsummary: s\nminutes: 1\nmodel: m\nprompt: abc\nseed: 4\nsettings: temperature 0.5\n---\n"


def lesson_of(*scenes: list[str]):
    written = "\n---\n".join(f"\n## Scene\n\nWords.\n\n{chr(10).join(f'- {key}' for key in keys)}\n" for keys in scenes)
    return read_lesson(HEAD + written, "small")


def test_steps_forced_tokens_and_settings_are_carried_from_scene_to_scene():
    lesson = lesson_of(
        ["show: tokens"],
        ["do: prefill", "do: step 2"],
        ['you: force "x"'],
        ["do: set temperature 0, seed 9", "you: step 3"],
        ["do: rewind to 3", "do: step"],
    )
    states = scene_states(lesson)
    assert states[0].start is None and states[1].before is None
    begun = states[1].start
    assert begun is not None and (begun.steps, begun.seed, begun.sampling.temperature) == (2, 4, 0.5)
    assert states[2].end is not None and states[2].end.forced == ((2, "x"),)
    assert states[3].start is not None and states[3].start.steps == 2
    end = states[3].end
    assert end is not None and (end.steps, end.sampling.temperature, end.seed) == (5, 0, 9)
    warm, cold = SamplingParams(temperature=0.5), SamplingParams(temperature=0)
    assert end.history == ((0, warm, 4), (3, cold, 9))
    last = states[4].end
    assert last is not None and (last.steps, last.forced, last.history) == (4, ((2, "x"),), end.history)


def test_a_guess_takes_one_step_by_itself():
    (state,) = scene_states(lesson_of(["do: prefill", "guess: What next?"]))
    assert state.start is not None and state.end is not None
    assert (state.start.steps, state.end.steps) == (0, 1)


def test_a_prefill_takes_the_lessons_prompt_unless_it_names_its_own():
    own, other = scene_states(lesson_of(["do: prefill afresh"], ['do: prefill chat "Hi"', "do: step"]))
    assert own.end is not None and other.end is not None
    assert (own.end.prompt, own.end.mode, own.end.afresh) == ("abc", "raw", True)
    assert (other.end.prompt, other.end.mode, other.end.afresh, other.end.steps) == ("Hi", "chat", False, 1)


def test_the_page_gets_every_act_with_the_whole_settings_it_leads_to():
    scene = lesson_json(lesson_of(["do: prefill", "you: set top-k 5"]))["scenes"][0]  # type: ignore[index]
    assert scene["do"] == [{"act": "prefill", "prompt": "abc", "mode": "raw", "afresh": False}]  # type: ignore[index]
    act = scene["you"]  # type: ignore[index]
    assert act["words"] == "top-k 5" and act["sampling"]["top_k"] == 5 and act["sampling"]["temperature"] == 0.5
    assert scene["end"]["sampling"] == act["sampling"]  # type: ignore[index]


@pytest.mark.parametrize(
    ("written", "given"),
    [
        ("look at layer 3 head 2", {"layer": 3, "head": 2}),
        ("look at prefill", {"step": 0}),
        ("look at newest", {"step": "newest"}),
        ("look at token 7", {"token": 7}),
        ("play 8", {"count": 8}),
        ('force " mat"', {"text": " mat"}),
        ('force "a\\n\\"b\\""', {"text": 'a\n"b"'}),
        ("rewind to 2", {"step": 2}),
        ("open forward", {"name": "forward"}),
    ],
)
def test_an_act_is_read_as_it_is_written(written: str, given: dict[str, object]):
    action = parse_action(written)
    assert {name: getattr(action, name) for name in given} == given
