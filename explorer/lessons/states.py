"""Where the run is before, at the beginning and at the end of each scene, worked out from the acts alone.

So a lesson can be entered at any scene: the run is brought there as a link would. And an act that could not be done is
found before anybody plays the lesson.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from engine.config import SamplingParams, StopRules
from engine.errors import InvalidSettings
from explorer.lessons.actions import Action, Changes
from explorer.lessons.lesson import Fault, Lesson, RunState, Scene


@dataclass(frozen=True, slots=True)
class SceneStates:
    """None: there is no run yet.

    before     when the scene is entered
    start      after what the page does for it
    end        after what the reader does
    after_do   what is in force after each act of the page, also while there is no run
    after_you  the same after the reader's act; None where there is none
    """

    before: RunState | None
    start: RunState | None
    end: RunState | None
    after_do: tuple[RunState, ...]
    after_you: RunState | None


class _CannotBe(Exception):
    """An act that cannot be done where it stands."""


def scene_states(lesson: Lesson) -> tuple[SceneStates, ...]:
    """The states of every scene. An act that cannot be done changes nothing; `state_faults` names it."""
    walk = _Walk(lesson)
    return tuple(walk.through(scene) for scene in lesson.scenes)


def state_faults(lesson: Lesson) -> list[Fault]:
    """Settings that cannot be, and acts that cannot be done where they stand."""
    walk = _Walk(lesson)
    for scene in lesson.scenes:
        walk.through(scene)
    return walk.faults


class _Walk:
    """The run as the acts leave it, and what is in force also while there is none."""

    def __init__(self, lesson: Lesson) -> None:
        self.faults: list[Fault] = []
        self._has_run = False
        self._now = RunState(lesson.prompt, lesson.mode, SamplingParams(), StopRules(), lesson.seed)
        try:
            self._now = _changed(self._now, lesson.settings)
        except _CannotBe as error:
            self.faults.append(Fault(lesson.settings_line, str(error)))

    def through(self, scene: Scene) -> SceneStates:
        before = self._run()
        after_do = tuple(self._do(scene, act) for act in scene.do)
        start = self._run()
        after_you = self._do(scene, scene.you) if scene.you else None
        if scene.ask and scene.ask.kind == "guess":
            self._do(scene, Action("step"))
        return SceneStates(before, start, self._run(), after_do, after_you)

    def _run(self) -> RunState | None:
        return self._now if self._has_run else None

    def _do(self, scene: Scene, act: Action) -> RunState:
        """What is in force after an act."""
        try:
            self._now = _after(self._now, act, has_run=self._has_run)
            self._has_run = self._has_run or act.act == "prefill"
        except _CannotBe as error:
            self.faults.append(Fault(act.line or scene.line, f"In “{scene.title}”: {error}"))
        return self._now


def _after(state: RunState, action: Action, *, has_run: bool) -> RunState:
    """The state after an act. Raises _CannotBe."""
    if action.act == "prefill":
        return _prefilled(state, action)
    if action.act == "set":
        return _changed(state, action.changes)
    if action.act in ("open", "close", "measure"):
        return state
    if not has_run:
        raise _CannotBe(f"{action.act} needs a run. Put do: prefill before it.")
    if action.act in ("step", "play", "slow"):
        return _stepped(state, action.count)
    if action.act == "force":
        others = tuple(one for one in state.forced if one[0] != state.steps)
        return replace(state, forced=(*others, (state.steps, action.text)))
    if action.act == "rewind":
        return _rewound(state, action.step)
    if action.act == "look" and isinstance(action.step, int) and action.step > state.steps:
        raise _CannotBe(f"There is no step {action.step} to look at: the run has {state.steps}.")
    return state


def _prefilled(state: RunState, action: Action) -> RunState:
    history = ((0, state.sampling, state.seed),)
    run = replace(state, afresh=action.afresh, steps=0, forced=(), history=history)
    return run if action.prompt is None else replace(run, prompt=action.prompt, mode=action.mode or "raw")


def _stepped(state: RunState, count: int) -> RunState:
    steps = state.steps + count
    if steps + 1 > state.stop.max_new_tokens:  # the prefill samples the first
        raise _CannotBe(
            f"{steps + 1} new tokens are more than the limit of {state.stop.max_new_tokens}. Raise it before."
        )
    _, sampling, seed = state.history[-1]
    now = (state.steps + 1, state.sampling, state.seed)
    history = state.history if (sampling, seed) == now[1:] else (*state.history, now)
    return replace(state, steps=steps, history=history)


def _rewound(state: RunState, to: object) -> RunState:
    assert isinstance(to, int)
    if to >= state.steps:
        raise _CannotBe(
            f"There is nothing to rewind: the run has {state.steps} steps, and {to} is not before the last."
        )
    forced = tuple(one for one in state.forced if one[0] <= to)
    return replace(state, steps=to, forced=forced, history=tuple(one for one in state.history if one[0] <= to))


def _changed(state: RunState, changes: Changes) -> RunState:
    """The state with other settings from the next step on. Raises _CannotBe where a value cannot be."""
    try:
        plain = SamplingParams() if changes.defaults else state.sampling
        sampling = replace(plain, **changes.sampling)  # type: ignore[arg-type]
        stop = replace(state.stop, **changes.stop)  # type: ignore[arg-type]
    except InvalidSettings as error:
        raise _CannotBe(str(error)) from None
    return replace(state, sampling=sampling, stop=stop, seed=state.seed if changes.seed is None else changes.seed)
