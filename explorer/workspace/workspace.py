"""What one browser tab works on: a model, the branches of one run, and the settings for the next token.

Every branch is a decode session of its own; forking copies, so nothing done in one shows in another.
Nothing here waits: operations ask the engine and changes a workspace only once the answer is there.
"""

from __future__ import annotations

import secrets
from collections.abc import Sequence
from concurrent.futures import Future
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

from engine.config import EngineConfig, Recipe, SamplingParams, StopRules
from explorer.hosting.admission import Admission
from explorer.hosting.limits import Hosting
from explorer.hosting.pace import Pace
from explorer.links.link import Link
from explorer.links.write import is_server_path, link_of
from explorer.live.token_payload import TokenList
from explorer.workspace.branch import Branch, give_up
from explorer.workspace.dropped import Act, Dropped, run_as_it_is
from explorer.workspace.examples import PromptMode
from explorer.workspace.recipe_json import SavedSession

if TYPE_CHECKING:
    from engine.llm_engine import LLMEngine
    from engine.session import DecodeSession
    from explorer.engines.pool import EnginePool, Loading


@dataclass(slots=True)
class Look:
    """The layer and head somebody settled on, for the link."""

    layer: int | None = None
    head: int | None = None


@dataclass(slots=True)
class Activity:
    """Long work under way, to be watched and cancelled.

    session    the one whose own progress counts
    incoming   a model that is being loaded
    words      what other work is doing: words, done, total
    cancelled  somebody asked for an end of it
    """

    session: DecodeSession | None = None
    incoming: Loading | None = None
    words: tuple[str, int, int] | None = None
    cancelled: bool = False

    def clear(self) -> None:
        """Nothing is under way."""
        self.session = self.incoming = self.words = None

    def cancel(self) -> None:
        """Ask for an end; the work ends at its next piece and leaves things as they were."""
        self.cancelled = True
        if self.session is not None:
            self.session.cancel()

    def progress(self) -> tuple[str, int, int] | None:
        """Words, done, total; None where nothing is known."""
        if self.incoming is not None:
            return f"loading {self.incoming.model}: {self.incoming.text}", round(100 * self.incoming.fraction), 100
        if self.session is not None and self.session.progress is not None:
            what, done, total = self.session.progress
            return _DOING.get(what, what), done, total
        return self.words


_DOING = {
    "prefill": "prefilling",
    "rebuild": "rebuilding the cache",
    "prompt rows": "reading the prompt's rows",
    "check": "checking the numbers",
    "attention map": "replaying the prompt",
}


@dataclass(slots=True)
class Workspace:
    """Everything a tab would lose.

    prompt     as typed; None before the first prefill, or where only its ids are known
    notes      what a person should know about how the prompt became tokens
    hosting    what visitors may ask for
    link       what the tab's URL asked for
    link_done  whether that was done: a link is opened once
    asks       the model that the link wants and nobody has agreed to load; None where there is none
    admission  where runs get their place in the engine
    solo       steps run in a forward of their own
    shared     the number under which the host may read this tab's text; None: nobody may
    dropped    what the last forced token, rewind, new prompt or Reset took away
    """

    pool: EnginePool
    loading: Loading
    hosting: Hosting = field(default_factory=Hosting)
    link: Link = field(default_factory=Link)
    link_done: bool = False
    asks: str | None = None
    sid: str = field(default_factory=lambda: secrets.token_urlsafe(24))
    branches: list[Branch] = field(default_factory=list)
    active: Branch | None = None
    prompt: str | None = None
    mode: PromptMode = "raw"
    notes: tuple[str, ...] = ()
    sampling: SamplingParams = field(default_factory=SamplingParams)
    stop: StopRules = field(default_factory=StopRules)
    seed: int = 0
    look: Look = field(default_factory=Look)
    activity: Activity = field(default_factory=Activity)
    admission: Admission = field(default_factory=Admission)
    solo: bool = False
    shared: int | None = None
    dropped: Dropped | None = None
    pace: Pace = field(init=False)
    _next_branch: int = 1

    def __post_init__(self) -> None:
        self.stop = self.hosting.bounded(self.stop)
        self.pace = Pace(self.hosting.play_rate)

    @property
    def engine(self) -> LLMEngine:
        """The engine in use. A workspace is made once its model runs."""
        return self.loading.future.result()

    def runs(self, model: str) -> bool:
        """Whether a model of this name is the one in use."""
        return model in (self.loading.model, self.engine.info.id, self.model_id)

    @property
    def model_id(self) -> str:
        """The model's id as the page may see it: where on a shared server it lies is nobody's business."""
        info = self.engine.info
        return info.name if self.hosting.is_hosted and is_server_path(info.id) else info.id

    @property
    def most_branches(self) -> int:
        """How many runs this tab may have."""
        return self.hosting.most_branches

    def step_alone(self, solo: bool) -> None:
        """Whether steps of this tab run in a forward of their own from now on."""
        self.solo = solo
        for branch in self.branches:
            branch.session.solo = solo

    def become(self, other: Workspace) -> None:
        """Take over what was built beside, and give up what was here. The name of this workspace stays."""
        self.close()
        self.loading, self.branches, self.active, self._next_branch = (
            other.loading,
            other.branches,
            other.active,
            other._next_branch,
        )
        self.prompt, self.mode, self.notes, self.look = other.prompt, other.mode, other.notes, other.look
        self.sampling, self.stop, self.seed = other.sampling, other.stop, other.seed
        self.asks = None
        self.dropped = None  # its tokens are another model's

    def before(self, act: Act, branches: Sequence[Branch]) -> Dropped | None:
        """What there is before an act; None where there is no step that could be dropped."""
        if self.active is None or not self.active.records:
            return None
        runs = tuple(run_as_it_is(branch) for branch in branches if branch.records)
        return Dropped(act, runs, self.active.id, len(self.active.records), self.prompt, self.mode, self.notes)

    def before_change_of(self, act: Act, branch: Branch) -> Dropped:
        """One run before an act that changes no other."""
        runs, steps = (run_as_it_is(branch),), len(branch.records)
        return Dropped(act, runs, branch.id, steps, self.prompt, self.mode, self.notes, in_place=True)

    def close(self) -> list[Future[None]]:
        """Give up every run, and the model. The Futures say when the places are free."""
        self.admission.line.leave(self.sid)
        self.shared = None
        closing = self.start_over()
        self.pool.leave(self.loading)
        return closing

    def move_to(self, loading: Loading) -> None:
        """Go on with another engine of the same model, where this one has ended. The runs are rebuilt when touched."""
        self.pool.leave(self.loading)
        self.loading = loading

    def rebuilt(self, branch: Branch, session: DecodeSession) -> None:
        """Let a run go on in another session, which has become what its recipe says."""
        branch.session, branch.tokens = session, TokenList(self.engine.tokenizer)

    def settings_recipe(self) -> Recipe:
        """The settings in force: the active session's own, or those for a session to come."""
        if self.active:
            return self.active.session.recipe
        return Recipe(self.engine.info.id, sampling=self.sampling, stop=self.stop, seed=self.seed)

    def add(self, session: DecodeSession, *, parent: int | None = None, at: int | None = None) -> Branch:
        """Take in a session as a new branch and make it the active one."""
        branch = Branch(self._next_branch, session, TokenList(self.engine.tokenizer), parent, at)
        self._next_branch += 1
        self.branches.append(branch)
        self.active = branch
        return branch

    def resume(self, active: int) -> None:
        """Go on with branches that are here again, one of them on screen."""
        self.active = next(branch for branch in self.branches if branch.id == active)
        self._next_branch = 1 + max(branch.id for branch in self.branches)

    def start_over(self) -> list[Future[None]]:
        """Give up every run."""
        closing = [closed for branch in self.branches if (closed := give_up(branch.session)) is not None]
        self.branches, self.active, self._next_branch = [], None, 1
        return closing

    def keep_settings(self) -> None:
        """Let the next session start with what the active one uses."""
        recipe = self.settings_recipe()
        self.sampling, self.stop, self.seed = recipe.sampling, recipe.stop, recipe.seed

    def saved(self) -> SavedSession | None:
        """The active branch as plain data, for the tab's own storage."""
        if self.active is None:
            return None
        snapshot = self.active.session.snapshot
        roles = snapshot.roles[: len(snapshot.recipe.prompt_ids)]
        return SavedSession(snapshot.recipe, self.prompt, self.mode, roles)

    def current_link(self) -> Link:
        """A link that shows the active branch again."""
        saved = self.saved()
        if saved is None:
            return Link()
        link = link_of(saved, self.shared_model(), self.look.layer, self.look.head, name=self.engine.info.name)
        return replace(link, stop=self.hosting.chosen(link.stop))

    def shared_model(self) -> str | None:
        """The model's name for a link; None where it is the one that every Loupe starts with."""
        return None if self.loading.model == EngineConfig().model else self.loading.model
