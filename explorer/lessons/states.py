"""Where the run is before, at the beginning and at the end of each scene, worked out from the acts alone.

So a lesson can be entered at any scene: the run is brought there as a link would. And an act that could not be done is
found before anybody plays the lesson.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

from engine.config import SamplingParams, StopRules
from engine.errors import InvalidSettings
from explorer.lessons.actions import Action, Changes
from explorer.lessons.lesson import Fault, Lesson, RunState, Scene


@dataclass(frozen=True, slots=True)
class SceneStates:
    """None: there is no run yet.

    before  when the scene is entered
    start   after what the page does for it
    end     after what the reader does
    """

    before: RunState | None
    start: RunState | None
    end: RunState | None


class CannotBe(Exception):
    """An act that cannot be done where it stands."""


def scene_states(lesson: Lesson) -> tuple[SceneStates, ...]:
    """The states of every scene. Raises CannotBe; `state_faults` says where."""
    return tuple(states for states, _ in _walk(lesson))


def state_faults(lesson: Lesson) -> list[Fault]:
    """Acts that cannot be done where they stand."""
    return [fault for _, faults in _walk(lesson) for fault in faults]


def before_any(lesson: Lesson) -> RunState:
    """The lesson's settings, with which its first run begins. Raises CannotBe where they are no settings."""
    plain = RunState(lesson.prompt, lesson.mode, SamplingParams(), StopRules(), lesson.seed)
    return changed(plain, lesson.settings)


def _walk(lesson: Lesson) -> Iterator[tuple[SceneStates, list[Fault]]]:
    try:
        settings, first = before_any(lesson), list[Fault]()
    except CannotBe as error:
        settings = RunState(lesson.prompt, lesson.mode, SamplingParams(), StopRules(), lesson.seed)
        first = [Fault(lesson.settings_line, str(error))]
    run = _Walk(settings)
    for scene in lesson.scenes:
        before, faults = run.state, first
        first = []
        run.do(scene, scene.do, faults)
        start = run.state
        if scene.you:
            run.do(scene, (scene.you,), faults)
        if scene.ask and scene.ask.kind == "guess":
            run.do(scene, (Action("step"),), faults)
        yield SceneStates(before, start, run.state), faults


@dataclass
class _Walk:
    """The run as the acts leave it; `settings` are in force also while there is none."""

    settings: RunState
    state: RunState | None = None

    def do(self, scene: Scene, acts: tuple[Action, ...], faults: list[Fault]) -> None:
        for act in acts:
            try:
                self.settings = after(self.settings, act, has_run=self.state is not None)
                if self.state is not None or act.act == "prefill":
                    self.state = self.settings
            except CannotBe as error:
                faults.append(Fault(act.line or scene.line, f"In “{scene.title}”: {error}"))


def after(state: RunState, action: Action, *, has_run: bool) -> RunState:
    """The state after an act. Raises CannotBe."""
    if action.act == "prefill":
        return _prefilled(state, action)
    if action.act == "set":
        return changed(state, action.changes)
    if action.act in ("open", "close", "measure"):
        return state
    if not has_run:
        raise CannotBe(f"{action.act} needs a run. Put do: prefill before it.")
    if action.act in ("step", "play", "slow"):
        return _stepped(state, action.count)
    if action.act == "force":
        others = tuple(one for one in state.forced if one[0] != state.steps)
        return replace(state, forced=(*others, (state.steps, action.text)))
    if action.act == "rewind":
        return _rewound(state, action.step)
    if action.act == "look" and isinstance(action.step, int) and action.step > state.steps:
        raise CannotBe(f"There is no step {action.step} to look at: the run has {state.steps}.")
    return state


def _prefilled(state: RunState, action: Action) -> RunState:
    history = ((0, state.sampling, state.seed),)
    run = replace(state, afresh=action.afresh, steps=0, forced=(), history=history)
    return run if action.prompt is None else replace(run, prompt=action.prompt, mode=action.mode or "raw")


def _stepped(state: RunState, count: int) -> RunState:
    steps = state.steps + count
    if steps + 1 > state.stop.max_new_tokens:  # the prefill samples the first
        raise CannotBe(
            f"{steps + 1} new tokens are more than the limit of {state.stop.max_new_tokens}. Raise it before."
        )
    _, sampling, seed = state.history[-1]
    now = (state.steps + 1, state.sampling, state.seed)
    history = state.history if (sampling, seed) == now[1:] else (*state.history, now)
    return replace(state, steps=steps, history=history)


def _rewound(state: RunState, to: object) -> RunState:
    assert isinstance(to, int)
    if to >= state.steps:
        raise CannotBe(f"There is nothing to rewind: the run has {state.steps} steps, and {to} is not before the last.")
    forced = tuple(one for one in state.forced if one[0] <= to)
    return replace(state, steps=to, forced=forced, history=tuple(one for one in state.history if one[0] <= to))


def changed(state: RunState, changes: Changes) -> RunState:
    """The state with other settings from the next step on. Raises CannotBe where a value cannot be."""
    try:
        plain = SamplingParams() if changes.defaults else state.sampling
        sampling = replace(plain, **changes.sampling)  # type: ignore[arg-type]
        stop = replace(state.stop, **changes.stop)  # type: ignore[arg-type]
    except InvalidSettings as error:
        raise CannotBe(str(error)) from None
    return replace(state, sampling=sampling, stop=stop, seed=state.seed if changes.seed is None else changes.seed)
