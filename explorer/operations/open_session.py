"""Operations that bring a session about: the page's greeting, a deep link, another model.

A link is replayed, not looked up: prefill, then step by step, each with the settings and the forced token
it had. The same model draws the same tokens again.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Generator, Sequence
from concurrent.futures import Future
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from engine.config import Recipe, StopRules
from engine.errors import LoupeError, SessionError, SessionFinished
from engine.tokens import Role
from explorer.hosting import disconnect
from explorer.links.link import Link, Settings, digest
from explorer.operations import checked, run_steps
from explorer.operations.new_session import new_session
from explorer.operations.operation import Args, Running, Value, plain
from explorer.operations.run_steps import Ahead
from explorer.workspace import recipe_json
from explorer.workspace.branch import give_up
from explorer.workspace.recipe_json import SavedSession
from explorer.workspace.workspace import Look, Workspace

if TYPE_CHECKING:
    from engine.session import DecodeSession

log = logging.getLogger(__name__)

_NEVER = StopRules(use_end_ids=False, max_new_tokens=1_000_000)  # to replay past a rule that was changed on the way


def hello(workspace: Workspace, args: Args) -> Running:
    """A page instance has opened: go on with what is here, rebuild what the tab remembers, or do what the link says."""
    if workspace.branches:
        yield from disconnect.settled(workspace.active)
        return plain(how="resumed")
    workspace.step_alone(checked.flag(args.get("solo", False), "solo"))
    if args.get("recipe") is not None:
        saved = recipe_json.from_json(args["recipe"])
        yield from _on_model(workspace, saved.recipe.model_id, lambda target: rebuild(target, saved))
        return plain(how="rebuilt")
    link = workspace.link
    if link.is_empty or workspace.link_done:
        return plain(how="new")
    workspace.link_done = True
    if link.model is not None and not workspace.runs(link.model) and not workspace.hosting.is_hosted:
        workspace.asks = link.model  # whoever made the link does not decide what is loaded here
        return plain(how="asks", notes=list(link.notes))
    yield from _follow(workspace, link.model)
    return plain(how="link", notes=list(workspace.link.notes))


def follow_link(workspace: Workspace, args: Args) -> Running:
    """Whoever is here has read which model the link wants: `load` it, or do without, on the model that runs."""
    wanted, load = workspace.asks, checked.flag(args.get("load"), "load")
    if wanted is None:
        raise checked.BadCommand("No link waits for an answer.")
    workspace.asks = None
    yield from _follow(workspace, wanted if load else None)
    return plain(notes=list(workspace.link.notes))


def _follow(workspace: Workspace, model: str | None) -> Running:
    link = workspace.link
    if link.model_name is not None and link.model_name != workspace.engine.info.name:
        link = workspace.link = _without_its_tokens(link, workspace.engine.info.name)
    try:
        yield from _on_model(workspace, model, lambda target: open_link(target, link), hub_token=False)
    except LoupeError as error:  # the page still opens, with the prompt in its box and the reason beside it
        workspace.link = replace(link, notes=(*link.notes, f"The link could not be replayed. {error}"))
    return plain()


def model(workspace: Workspace, args: Args) -> Running:
    """Another model. The prompt on screen is prefilled in it; the old one goes on until that has worked."""
    workspace.hosting.require_own_models()
    wanted = checked.text(args.get("id"), "id", 500).strip()
    if not wanted:
        raise checked.BadCommand("Name a model: a known name, a Hub id, a folder, or a .gguf file.")
    if workspace.runs(wanted):
        return plain(model=workspace.engine.info.id)
    workspace.keep_settings()
    yield from _on_model(workspace, wanted, lambda target: _same_prompt(target, workspace))
    return plain(model=workspace.engine.info.id)


def rebuild(workspace: Workspace, saved: SavedSession) -> Running:
    """A session from its recipe, as the tab's own storage or another tab's session has it."""
    workspace.hosting.require_recipe(saved.recipe)
    recipe = replace(saved.recipe, stop=workspace.hosting.bounded(saved.recipe.stop))
    workspace.add((yield from session_of(workspace, recipe, saved.roles)))
    workspace.prompt, workspace.mode = saved.prompt, saved.mode
    workspace.keep_settings()
    return plain()


def session_of(
    workspace: Workspace, recipe: Recipe, roles: Sequence[Role]
) -> Generator[Future[Any], Any, DecodeSession]:
    """A new session that has become what `recipe` says."""
    session = yield from new_session(workspace, recipe)
    workspace.activity.session = session
    try:
        yield session.rebuild(recipe, roles)
    except BaseException:
        give_up(session)
        raise
    return session


def move_to_running_engine(workspace: Workspace) -> Running:
    """Go on with another engine of the same model, where this one has ended."""
    activity, pool = workspace.activity, workspace.pool
    activity.incoming = loading = pool.request(workspace.loading.model)
    try:
        yield loading.future
    except BaseException:
        pool.leave(loading)
        raise
    activity.incoming = None
    workspace.move_to(loading)
    return plain()


def rebuild_lost(workspace: Workspace) -> Running:
    """Let every run whose engine has ended go on in the one that took its place."""
    for branch in workspace.branches:
        if branch.is_lost:
            snapshot = branch.session.snapshot
            roles = snapshot.roles[: len(snapshot.recipe.prompt_ids)]
            session = yield from session_of(workspace, snapshot.recipe, roles)
            ended = snapshot.records[-1].finish_reason if snapshot.records else None
            if ended in ("user", "disconnect"):  # no recipe says so: it is not what draws tokens
                yield session.stop(ended)
            workspace.rebuilt(branch, session)
    return plain()


def _without_its_tokens(link: Link, here: str) -> Link:
    """What of a link holds under another model than the one it was made with, and the words that say so."""
    words = (
        f"This link was made with the model {link.model_name}, a file or folder of another machine, which a link "
        f"cannot carry. {here} runs here and would give other tokens, so only the prompt and the settings were taken "
        "over."
    )
    return replace(link, steps=None, forced={}, history={}, notes=(*link.notes, words))


def open_link(workspace: Workspace, link: Link, *, afresh: bool = False) -> Running:
    """Do what a link says: its settings, and its tokens where it has any. `afresh`: no prefill is copied."""
    workspace.look = Look(link.layer, link.head)
    stop, has_run = workspace.hosting.bounded(link.stop), link.prompt is not None and link.steps is not None
    first = link.settings_at(0) if has_run else link.settings
    yield from run_steps.configure(workspace, Ahead(first.sampling, stop, first.seed))
    if link.prompt is not None and has_run:
        yield from run_steps.start_run(workspace, link.prompt, link.mode, afresh=afresh)
        _say_what_changed(workspace, link)
        yield from _forced(workspace, link, 0)
        yield from go_on(workspace, link)
    workspace.dropped = None  # what a link replays on its way is no act of a person
    return plain()


def go_on(workspace: Workspace, link: Link) -> Running:
    """Take the steps of a link that the run on screen has not taken yet, and put its settings in force."""
    branch, steps = workspace.active, 0 if link.steps is None else link.steps
    if branch is not None and branch.newest < steps:
        yield from _in_force(workspace, link, link.settings_at(branch.newest + 1))
        for index in range(branch.newest + 1, steps + 1):
            workspace.activity.words = ("replaying the link", index, steps)
            if workspace.activity.cancelled or not (yield from _again(workspace, link, index)):
                break
    return (yield from _in_force(workspace, link, link.settings))


def _in_force(workspace: Workspace, link: Link, now: Settings) -> Running:
    """Settings, and the link's stop rules where others are in force: those check every record anew."""
    stop = workspace.hosting.bounded(link.stop)
    changed = None if stop == workspace.settings_recipe().stop else stop
    return (yield from run_steps.configure(workspace, Ahead(now.sampling, changed, now.seed)))


def _say_what_changed(workspace: Workspace, link: Link) -> None:
    """A link carries what was typed, not what the chat template made of it then."""
    assert workspace.active is not None, "a link is opened into the run that its prefill made"
    if link.fed is not None and link.fed != digest(workspace.active.session.recipe.prompt_ids):
        workspace.notes = (
            *workspace.notes,
            "The prompt is now other tokens than when this link was made: the chat template writes other text around "
            "the message (today's date, say), or the model has another one. So the tokens that follow may differ.",
        )


def _again(workspace: Workspace, link: Link, index: int) -> Generator[Future[Any] | float, Any, bool]:
    """One step of a link. False where nothing more can be decoded."""
    change: Settings | None = link.history.get(index)
    if change is not None:
        yield from run_steps.configure(workspace, Ahead(sampling=change.sampling, seed=change.seed))
    assert workspace.active is not None, "a link is replayed into the run that its prefill made"
    session = workspace.active.session
    try:
        yield session.step(auto=True)  # nobody waits for this one: whoever presses a button goes first
    except SessionFinished:
        yield session.configure(
            stop=workspace.hosting.bounded(_NEVER)
        )  # the person who made the link went on, so a rule was other then
        try:
            yield session.step(auto=True)
        except SessionFinished:  # the context is full, or the class's limit is reached
            return False
    yield from _forced(workspace, link, index)
    return True


def _forced(workspace: Workspace, link: Link, index: int) -> Generator[Future[Any] | float, Any, None]:
    if index in link.forced:
        yield from run_steps.force(workspace, {"step": index, "token_id": link.forced[index]})


def _same_prompt(target: Workspace, source: Workspace) -> Running:
    """The source's prompt and settings, in the target's model."""
    target.sampling, target.stop, target.seed = source.sampling, source.stop, source.seed
    if source.prompt is not None:
        mode = source.mode if target.engine.info.has_chat_template else "raw"
        yield from run_steps.start_run(target, source.prompt, mode)
    return plain()


def _on_model(
    workspace: Workspace, name: str | None, work: Callable[[Workspace], Running], *, hub_token: bool = True
) -> Running:
    """Do `work` where the named model runs. Another model is loaded beside, and takes over only once all went well."""
    if name is None or workspace.runs(name):
        return (yield from work(workspace))
    workspace.hosting.require_own_models()
    activity = workspace.activity
    activity.incoming = loading = workspace.pool.request(name, hub_token=hub_token)
    beside = Workspace(
        workspace.pool,
        loading,
        workspace.hosting,
        activity=activity,
        link=workspace.link,
        admission=workspace.admission,
        solo=workspace.solo,
    )
    try:
        yield loading.future
        activity.incoming = None
        if activity.cancelled:
            raise SessionError("The change of model was cancelled. The session is as it was.")
        value: Value = yield from work(beside)
    except BaseException:
        beside.close()
        raise
    workspace.become(beside)
    return value
