"""The one bridge between pages and engines: models, sessions by tab, and what happens when a tab goes away.

A reload makes a new Streamlit session that knows nothing. The tab's own storage still has the session's
name, and says it in `hello`: here that name is taken up again, copied where another live tab has it, or
left to be rebuilt from the recipe where this process never knew it.
"""

from __future__ import annotations

import atexit
import os
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import Future
from dataclasses import dataclass, field, replace

from engine.config import EngineConfig
from engine.serving.counters import EngineCounters, add_up
from explorer.engines.pool import EnginePool, Loading
from explorer.gate.attempts import Attempts
from explorer.hosting.admission import Admission
from explorer.hosting.connections import CONNECTIONS, is_elsewhere
from explorer.hosting.health import Health
from explorer.hosting.leases import Lease, Limits, Registry, start_reaper
from explorer.hosting.limits import Hosting, NotHere, from_environment
from explorer.hosting.prometheus import serve
from explorer.hosting.waiting_line import Waiting, WaitingLine
from explorer.links import read
from explorer.live.driver import TabDriver
from explorer.live.page_frame import PageFrames
from explorer.live.wire import Command, Wire
from explorer.workspace.recipe_json import to_json
from explorer.workspace.workspace import Workspace

REAP_EVERY_S = 5.0


class Tab(TabDriver):
    """A tab's driver with what makes its frames, and the network address it was opened from."""

    def __init__(self, workspace: Workspace, clock: Callable[[], float] = time.monotonic, address: str = "") -> None:
        super().__init__(workspace, clock=clock)
        self.address = address
        self.frames = PageFrames(self)

    @property
    def is_alive(self) -> bool:
        """Whether the engine under it still runs."""
        return self.workspace.engine.is_alive


@dataclass(slots=True, eq=False)
class Runtime:
    """Everything that outlives a rerun."""

    pool: EnginePool
    tabs: Registry[Tab]
    hosting: Hosting = field(default_factory=Hosting)
    waiting_line: WaitingLine = field(default_factory=WaitingLine)
    entrance: threading.Lock = field(default_factory=threading.Lock)
    attempts: Attempts = field(default_factory=Attempts)
    health: Health = field(init=False)
    admission: Admission = field(init=False)

    def __post_init__(self) -> None:
        self.health = Health(self.pool)
        self.admission = Admission(self.forget_longest_gone)

    def open_tab(self, owner: str, params: Mapping[str, Sequence[str]], loading: Loading, address: str = "") -> Tab:
        """A new tab on a running model. What its URL asks for waits for the page's greeting."""
        tab = Tab(
            Workspace(self.pool, loading, self.hosting, link=read.parse(params), admission=self.admission),
            self.tabs.clock,
            address,
        )
        self.tabs.add(tab, owner)
        return tab

    def admit(
        self, owner: str, params: Mapping[str, Sequence[str]], loading: Loading, address: str = ""
    ) -> Tab | Waiting:
        """A new tab, or a place in line where the class is full. Raises NotHere where its address has its share."""
        with self.entrance:  # two who come at once must not both see the last place free
            self._require_share(address)
            waiting = self.ask(owner)
            if waiting is not None:
                return waiting
            self.waiting_line.leave(owner)
            return self.open_tab(owner, params, loading, address)

    def _require_share(self, address: str) -> None:
        most = self.hosting.max_sessions_per_address
        if not most or not is_elsewhere(address):
            return
        if sum(tab.address == address for tab in self.tabs.with_place()) >= most:
            raise NotHere(
                f"From your network {most:,} tabs are in this class already, and it takes no more from one. "
                "Close one, and reload this page a minute later."
            )

    def ask(self, owner: str) -> Waiting | None:
        """Where somebody stands in line; None where they may come in."""
        most = self.hosting.max_sessions
        return self.waiting_line.ask(owner, most - self.tabs.in_use()) if most else None

    def take_back(self, sid: str, owner: str) -> bool:
        """Whether this one may go on with a session whose place was kept."""
        if not self.tabs.keeps_place(sid) or self.tab(sid, owner) is None:
            return False
        self.waiting_line.leave(owner)
        return True

    def tab(self, sid: str | None, owner: str) -> Tab | None:
        """The tab of this name, if it is this owner's and can be used."""
        if sid is None or self.tabs.claim(sid, owner) != "yours":
            return None
        tab = self.tabs.get(sid)
        return tab if tab is not None and tab.is_alive else None

    def revive(self, sid: str | None, owner: str, loading: Loading) -> Tab | None:
        """This owner's tab whose engine has ended, on a running one: its place, its recipes and its name stay.

        Takes over the use of `loading`, but where it returns None.
        """
        if sid is None or self.tabs.claim(sid, owner) != "yours":
            return None
        tab = self.tabs.get(sid)
        if tab is None or tab.workspace.loading.model != loading.model:
            return None
        with tab.lock:
            if tab.is_alive:
                self.pool.leave(loading)
            else:
                tab.workspace.move_to(loading)
        return tab

    def receive(self, tab: Tab, owner: str, wire: Wire) -> Tab:
        """Run a wire's commands. Returns the tab that goes on: a greeting may have named an older one."""
        greeting = next((c for c in wire.commands if c.op == "hello"), None)
        if greeting is not None and not tab.workspace.branches:
            tab, wire = self._recognise(tab, owner, wire, greeting)
        tab.receive(wire)
        return tab

    def _recognise(self, tab: Tab, owner: str, wire: Wire, greeting: Command) -> tuple[Tab, Wire]:
        sid = greeting.args.get("sid")
        if not isinstance(sid, str) or sid == tab.sid:
            return tab, wire
        claim = self.tabs.claim(sid, owner)
        known = self.tabs.get(sid)
        if claim == "unknown" or known is None:
            return tab, wire
        if claim == "yours" and self._is_revived(known, owner, tab.workspace.loading.model):
            self.tabs.drop(tab.sid)
            return known, wire
        saved = known.workspace.saved()  # a live tab has it, or its model is gone: this one gets a copy
        if claim == "yours":
            self.tabs.drop(sid)
        args: dict[str, object] = {"solo": known.workspace.solo}
        if saved:
            args["recipe"] = to_json(saved)
        return tab, wire.with_args(greeting.n, args)

    def _is_revived(self, known: Tab, owner: str, running: str) -> bool:
        """Whether a tab has an engine, if need be the one that runs its model now."""
        if known.is_alive:
            return True
        if known.workspace.loading.model != running:
            return False
        loading = self.pool.request(running)
        if self.revive(known.sid, owner, loading) is None:
            self.pool.leave(loading)
            return False
        return True

    def counters(self) -> EngineCounters:
        """What all engines of this process have done and hold."""
        return add_up([engine.counters() for engine in self.pool.running()])

    def forget_longest_gone(self) -> Future[None] | None:
        """Give up the runs of the tab that left longest ago. None where nobody has left who had one."""
        while (gone := self.tabs.take_longest_gone()) is not None:
            closing = gone.close()
            if closing:
                return closing[-1]
        return None

    def reap(self) -> None:
        """Free what nobody uses. What is held beyond the budget, the engine frees by itself."""
        self.tabs.reap()
        self.pool.close_unused()


def engine_config(hosting: Hosting) -> EngineConfig:
    """A class shares prompts; one person at home wants to see what a prefill costs every time."""
    config = EngineConfig() if hosting.is_hosted else EngineConfig(prefix_bytes=0)
    config = replace(config, budgets=hosting.budgets)
    return replace(config, model=hosting.model) if hosting.model else config


_lock = threading.Lock()
_the_one: list[Runtime] = []  # not in Streamlit's caches: those can be emptied


def runtime() -> Runtime:
    """The one runtime of this process, made when it is first asked for."""
    with _lock:
        if not _the_one:
            _the_one.append(_made())
        return _the_one[0]


def close() -> None:
    """End the runtime; asking for it makes another."""
    with _lock:
        ended, _the_one[:] = list(_the_one), []
    for one in ended:
        one.pool.close()


def _made() -> Runtime:
    hosting = from_environment(os.environ)
    made = Runtime(EnginePool(engine_config(hosting)), Registry(Limits(grace_s=hosting.grace_s)), hosting)
    start_reaper(made.reap, REAP_EVERY_S)
    if hosting.metrics_port:
        serve(made, hosting.metrics_port)
    atexit.register(made.pool.close)
    return made


def hold(sid: str, owner: str, connection: str | None) -> None:
    """Let a connection hold a session for its owner. When it is gone, the session is released."""
    lease, tabs = Lease(sid, owner), runtime().tabs
    CONNECTIONS.keep(connection, lease, lambda: tabs.release(lease))
