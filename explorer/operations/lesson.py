"""Operations of lessons: which there are, one of them whole, and a run brought to where one of its scenes needs it."""

from __future__ import annotations

from engine.errors import PromptError, UnknownToken
from explorer.lessons import refusals
from explorer.lessons.lesson import Lesson, RunState
from explorer.lessons.payload import lesson_json
from explorer.lessons.shelf import SHELF
from explorer.lessons.states import scene_states
from explorer.links.link import Link, Settings
from explorer.operations import checked
from explorer.operations.open_session import go_on, open_link
from explorer.operations.operation import Args, Running, Value, at_once, plain
from explorer.workspace.workspace import Workspace


@at_once
def lessons(workspace: Workspace, args: Args) -> Value:
    """Every lesson in a line."""
    return plain(
        lessons=[
            {
                "id": one.id,
                "title": one.lesson.title if one.lesson else one.id,
                "summary": one.lesson.summary if one.lesson else "",
                "minutes": one.lesson.minutes if one.lesson else 0,
                "scenes": len(one.lesson.scenes) if one.lesson else 0,
                "faults": len(one.faults),
            }
            for one in SHELF.all()
        ]
    )


@at_once
def lesson(workspace: Workspace, args: Args) -> Value:
    """One lesson, whole."""
    return plain(**lesson_json(_asked(workspace, args)))


def lesson_run(workspace: Workspace, args: Args) -> Running:
    """Bring the run to where a scene begins, or where it ends; Undo brings back what was there before."""
    asked = _asked(workspace, args)
    scene = checked.whole(args.get("scene"), "scene", 1, 1_000)
    if scene > len(asked.scenes):
        raise refusals.no_scene(asked, scene)
    states = scene_states(asked)[scene - 1]
    at = args.get("at", "start")
    if at not in ("start", "end"):
        raise checked.BadCommand(f"at must be start or end, got {checked.short(at)}.")
    wanted = states.end if at == "end" else states.start
    if wanted is None:
        return plain(step=None)
    link = _link_to(workspace, wanted)
    dropped = workspace.before("prefill", workspace.branches)
    if _is_on_the_way(workspace, link, wanted):
        yield from go_on(workspace, link)
    else:
        yield from open_link(workspace, link, afresh=wanted.afresh)
        workspace.dropped = dropped
    return plain(step=_reached(workspace, wanted))


def _asked(workspace: Workspace, args: Args) -> Lesson:
    name = checked.text(args.get("id"), "id", 200)
    return SHELF.lesson(name, tells_faults=not workspace.hosting.is_hosted)


def _link_to(workspace: Workspace, state: RunState) -> Link:
    """What a link to this state would say."""
    now = Settings(state.sampling, state.seed)
    history = {step: Settings(sampling, seed) for step, sampling, seed in state.history}
    return Link(
        prompt=state.prompt,
        mode=state.mode,
        settings=now,
        stop=state.stop,
        steps=state.steps,
        forced={step: _token_of(workspace, text) for step, text in state.forced},
        history={} if all(settings == now for settings in history.values()) else history,
        layer=workspace.look.layer,
        head=workspace.look.head,
    )


def _token_of(workspace: Workspace, text: str) -> int:
    """The one token that spells this text. Raises NoLesson where this model has none."""
    tokenizer, info = workspace.engine.tokenizer, workspace.engine.info
    try:
        ids = tokenizer.readings(text, info.vocab_size)
    except (PromptError, UnknownToken):
        ids = ()
    for token_id in ids:
        if tokenizer.piece(token_id).text == text:
            return token_id
    raise refusals.no_token(text, info.name)


def _is_on_the_way(workspace: Workspace, wanted: Link, state: RunState) -> bool:
    """Whether the run on screen becomes the wanted one by going on."""
    branch = workspace.active
    if branch is None or not branch.records or wanted.steps is None or branch.newest > wanted.steps:
        return False
    if state.afresh and branch.records[0].reused_tokens:
        return False
    now = workspace.current_link()
    settled = range(branch.newest + 1)
    return (
        (workspace.prompt, workspace.mode) == (wanted.prompt, wanted.mode)
        and dict(now.forced) == {step: token for step, token in wanted.forced.items() if step in settled}
        and all(now.settings_at(step) == wanted.settings_at(step) for step in settled)
    )


def _reached(workspace: Workspace, wanted: RunState) -> int:
    branch = workspace.active
    newest = branch.newest if branch else -1
    if branch is None or newest < wanted.steps:
        last = branch.records[-1].finish_reason if branch and branch.records else None
        raise refusals.ended(newest, last or "it was stopped")
    return newest
