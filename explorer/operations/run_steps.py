"""Operations that move the session: prefill, step, rewind, fork, force, reset, stop, and the settings ahead."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass

from engine.config import PRESETS, Recipe, SamplingParams, StopRules
from engine.errors import SessionError, UnknownToken
from explorer.engines import bridge
from explorer.operations import checked
from explorer.operations.checked import BadCommand
from explorer.operations.new_session import new_session, placed
from explorer.operations.operation import Args, Running, Value, active, at_once, plain, step_of
from explorer.workspace.branch import give_up
from explorer.workspace.examples import PromptMode
from explorer.workspace.workspace import Workspace

_ENCODER = ThreadPoolExecutor(1, "loupe-encode")  # a long prompt takes tens of milliseconds of everybody's event loop


@dataclass(frozen=True, slots=True)
class Ahead:
    """Settings from the next step on; None leaves one as it is."""

    sampling: SamplingParams | None = None
    stop: StopRules | None = None
    seed: int | None = None
    solo: bool | None = None


def prefill(workspace: Workspace, args: Args) -> Running:
    """A new run from a prompt. The old one stays until the new one has its first token."""
    prompt = args.get("prompt")
    if not isinstance(prompt, str):
        raise BadCommand(f"prompt must be text, got {checked.short(prompt)}.")
    afresh = checked.flag(args.get("afresh", False), "afresh")
    return (yield from start_run(workspace, prompt, checked.prompt_mode(args.get("mode", "raw")), afresh=afresh))


def _clean(prompt: str) -> str:
    """A prompt as it can be kept and sent back: half a surrogate pair is no character."""
    return prompt.encode("utf-16", "surrogatepass").decode("utf-16", "replace")


def start_run(workspace: Workspace, prompt: str, mode: PromptMode, *, afresh: bool = False) -> Running:
    """Prefill `prompt` into a new session and put it in place of all branches. `afresh`: nothing of it is copied."""
    workspace.hosting.require_length(len(prompt))
    encoded = yield _ENCODER.submit(bridge.encode, workspace.engine, prompt, mode)
    workspace.hosting.require_tokens(len(encoded.ids))
    session = yield from new_session(workspace, workspace.settings_recipe())
    workspace.activity.session = session
    try:
        if workspace.activity.cancelled:  # before there was a session to be told so
            raise SessionError("It was stopped before it was done. The session is as it was.")
        yield session.prefill(encoded, afresh=afresh)
    except BaseException:
        give_up(session)
        raise
    workspace.keep_settings()
    workspace.dropped = workspace.before("prefill", workspace.branches) or workspace.dropped
    workspace.start_over()
    workspace.add(session)
    workspace.prompt, workspace.mode, workspace.notes = _clean(prompt), mode, encoded.notes
    return plain(notes=list(encoded.notes))


def step(workspace: Workspace, args: Args) -> Running:
    """One turn of the loop. An `auto` one was asked for by autoplay: whoever presses a button goes first."""
    branch = active(workspace)
    auto = checked.flag(args.get("auto", False), "auto")
    pause = workspace.pace.wait_s()
    if pause > 0:
        yield pause
    workspace.activity.session = branch.session
    record = yield branch.session.step(auto=auto)
    return plain(step=record.index, finish_reason=record.finish_reason)


def rewind(workspace: Workspace, args: Args) -> Running:
    """Forget what came after a step."""
    branch = active(workspace)
    kept = step_of(branch, args)
    dropped = workspace.before_change_of("rewind", branch) if kept < branch.newest else workspace.dropped
    yield branch.session.rewind(kept)
    workspace.dropped = dropped
    return plain(step=kept)


def fork(workspace: Workspace, args: Args) -> Running:
    """A copy of the run up to a step, on screen from now on; the run it left stays."""
    branch = active(workspace)
    kept = step_of(branch, args)
    most = workspace.most_branches
    if len(workspace.branches) >= most:
        raise SessionError(f"There are {most} runs already, each with a cache of its own. Rewind instead, or reset.")
    session = yield from placed(workspace, lambda: branch.session.fork(kept))
    copy = workspace.add(session, parent=branch.id, at=kept)
    return plain(branch=copy.id)


@at_once
def switch(workspace: Workspace, args: Args) -> Value:
    """Put another run on screen."""
    wanted = checked.whole(args.get("branch"), "branch", 0, 2**31)
    found = next((branch for branch in workspace.branches if branch.id == wanted), None)
    if found is None:
        raise SessionError(f"There is no run {wanted} in this tab.")
    workspace.active = found
    return plain(branch=found.id)


def force(workspace: Workspace, args: Args) -> Running:
    """Put a token in place of what a step drew; an older step is rewound to first."""
    branch = active(workspace)
    at = step_of(branch, args)
    token_id = checked.whole(args.get("token_id"), "token_id", 0, 2**31 - 1)
    size = workspace.engine.info.vocab_size
    if token_id >= size:  # asked before anything is rewound
        raise UnknownToken(f"There is no token {token_id}: ids go from 0 to {size - 1:,}.")
    dropped = workspace.before_change_of("force", branch)
    if at < branch.newest:
        yield branch.session.rewind(at)
        workspace.dropped = dropped
    record = yield branch.session.force(token_id)
    workspace.dropped = dropped
    return plain(step=record.index)


@at_once
def reset(workspace: Workspace, args: Args) -> Value:
    """Forget every run; the settings stay."""
    workspace.keep_settings()
    workspace.dropped = workspace.before("reset", workspace.branches) or workspace.dropped
    workspace.start_over()
    workspace.prompt, workspace.notes = None, ()
    return plain()


def stop(workspace: Workspace, args: Args) -> Running:
    """End decoding; with `run` false only long work: it was cancelled when the command came, and may be over since."""
    ends_run = checked.flag(args.get("run", True), "run")
    if workspace.activity.cancelled:
        workspace.activity.cancelled = False
        return plain(cancelled=True)
    if ends_run and workspace.active and workspace.active.records:
        yield workspace.active.session.stop("user")
    return plain(cancelled=False)


def settings(workspace: Workspace, args: Args) -> Running:
    """Settings from the next step on."""
    checked.known_keys(args, "settings", ("sampling", "stop", "seed", "solo"))
    now = workspace.settings_recipe()
    ahead = Ahead(
        sampling=checked.sampling(args["sampling"], now.sampling) if "sampling" in args else None,
        stop=checked.stop_rules(args["stop"], now.stop) if "stop" in args else None,
        seed=checked.seed(args["seed"]) if "seed" in args else None,
        solo=checked.flag(args["solo"], "solo") if "solo" in args else None,
    )
    if ahead.stop is not None:
        workspace.hosting.require_stop(ahead.stop)
    return (yield from configure(workspace, ahead))


def preset(workspace: Workspace, args: Args) -> Running:
    """Sampling settings by their name."""
    name = args.get("name")
    if not isinstance(name, str) or name not in PRESETS:
        raise BadCommand(f"There is no preset {checked.short(name)}. Known: {', '.join(PRESETS)}.")
    return (yield from configure(workspace, Ahead(sampling=PRESETS[name])))


def configure(workspace: Workspace, ahead: Ahead) -> Running:
    """Put settings in force, for the run on screen and for the next one."""
    now = workspace.settings_recipe()
    wanted = Recipe(
        now.model_id,
        sampling=ahead.sampling or now.sampling,
        stop=workspace.hosting.bounded(ahead.stop or now.stop),
        seed=now.seed if ahead.seed is None else ahead.seed,
    )
    branch = workspace.active
    if branch is not None:
        stop = None if ahead.stop is None else wanted.stop
        yield branch.session.configure(sampling=ahead.sampling, stop=stop, seed=ahead.seed)
    workspace.sampling, workspace.stop, workspace.seed = wanted.sampling, wanted.stop, wanted.seed
    if ahead.solo is not None:
        workspace.step_alone(ahead.solo)
    return plain()


@at_once
def select(workspace: Workspace, args: Args) -> Value:
    """The layer and head somebody settled on: the link says where to look."""
    info = workspace.engine.info
    layer = checked.whole(args.get("layer"), "layer", 0, info.num_layers - 1)
    workspace.look.layer, workspace.look.head = layer, checked.whole(args.get("head"), "head", 0, info.num_heads - 1)
    return plain()
