"""A lesson as the page's player gets it: plain JSON, with the state of the run for every scene."""

from __future__ import annotations

from explorer.lessons.actions import Action
from explorer.lessons.lesson import Ask, Lesson, RunState, Scene, Span, Text
from explorer.lessons.states import SceneStates, scene_states
from explorer.live.frame import Json
from explorer.live.record_payload import JsonObject, sampling_json
from explorer.workspace.recipe_json import stop_json


def lesson_json(lesson: Lesson) -> JsonObject:
    """The whole lesson."""
    scenes: list[Json] = [
        _scene_json(scene, states) for scene, states in zip(lesson.scenes, scene_states(lesson), strict=True)
    ]
    return {
        "id": lesson.id,
        "title": lesson.title,
        "summary": lesson.summary,
        "minutes": lesson.minutes,
        "model": lesson.model,
        "scenes": scenes,
    }


def _scene_json(scene: Scene, states: SceneStates) -> JsonObject:
    return {
        "title": scene.title,
        "text": [_text_json(part) for part in scene.text],
        "do": [_action_json(act, then) for act, then in zip(scene.do, states.after_do, strict=True)],
        "you": _action_json(scene.you, states.after_you) if scene.you and states.after_you else None,
        "show": list(scene.show),
        "ask": _ask_json(scene.ask) if scene.ask else None,
        "then": _text_json(scene.then) if scene.then else None,
        "before": _state_json(states.before),
        "start": _state_json(states.start),
        "end": _state_json(states.end),
    }


def _text_json(text: Text) -> list[Json]:
    return [_span_json(span) for span in text]


def _span_json(span: Span) -> JsonObject:
    if span.kind == "term":
        return {"term": span.target, "text": span.text}
    if span.kind == "link":
        return {"href": span.target, "text": span.text}
    return {span.kind: span.text}


def _ask_json(ask: Ask) -> JsonObject:
    question: JsonObject = {"kind": ask.kind, "question": _text_json(ask.question)}
    if ask.kind == "choose":
        question["choices"] = [{"text": _text_json(choice.text), "right": choice.right} for choice in ask.choices]
    if ask.kind == "number":
        question |= {"answer": ask.answer, "within": ask.within}
    return question


def _action_json(action: Action, then: RunState) -> JsonObject:
    """An act with everything that the page needs to do it; `then` is the state after it."""
    given: JsonObject = {"act": action.act}
    if action.act == "prefill":
        return {**given, "prompt": then.prompt, "mode": then.mode, "afresh": then.afresh}
    if action.act in ("step", "play"):
        return {**given, "n": action.count}
    if action.act == "set":
        return {**given, **_settings_json(action, then), "words": action.words}
    values = {name: getattr(action, name) for name in ("step", "layer", "head", "token")}
    given |= {name: value for name, value in values.items() if value is not None}
    given |= {name: value for name in ("name", "text") if (value := getattr(action, name))}
    return given


def _settings_json(action: Action, then: RunState) -> JsonObject:
    """Those that the act changes, each as it then is as a whole."""
    changes = action.changes
    settings: JsonObject = {}
    if changes.sampling or changes.defaults:
        settings["sampling"] = sampling_json(then.sampling)
    if changes.stop:
        settings["stop"] = stop_json(then.stop)
    if changes.seed is not None:
        settings["seed"] = changes.seed
    if changes.solo is not None:
        settings["solo"] = changes.solo
    return settings


def _state_json(state: RunState | None) -> Json:
    if state is None:
        return None
    return {
        "prompt": state.prompt,
        "mode": state.mode,
        "sampling": sampling_json(state.sampling),
        "stop": stop_json(state.stop),
        "seed": state.seed,
        "afresh": state.afresh,
        "steps": state.steps,
        "history": [[step, sampling_json(sampling)] for step, sampling, _ in state.history],
        "forced": [step for step, _ in state.forced],
    }
