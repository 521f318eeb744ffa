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
from dataclasses import dataclass, field, replace

import streamlit as st

from engine.config import EngineConfig
from explorer import link_reader
from explorer.door import Door, Waiting
from explorer.driver import TabDriver
from explorer.engine_pool import EnginePool, Loading
from explorer.health import Health
from explorer.hosting import Hosting, from_environment
from explorer.leases import Lease, Limits, Registry, start_reaper
from explorer.meter import Meter
from explorer.metrics import serve
from explorer.page_frame import PageFrames
from explorer.recipe_json import to_json
from explorer.wire import Command, Wire
from explorer.workspace import Workspace

REAP_EVERY_S = 5.0


class Tab(TabDriver):
    """A tab's driver with what makes its frames."""

    def __init__(self, workspace: Workspace, clock: Callable[[], float] = time.monotonic) -> None:
        super().__init__(workspace, clock=clock)
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
    door: Door = field(default_factory=Door)
    meter: Meter = field(default_factory=Meter)
    entrance: threading.Lock = field(default_factory=threading.Lock)
    health: Health = field(init=False)

    def __post_init__(self) -> None:
        self.health = Health(self.pool)

    def open_tab(self, owner: str, params: Mapping[str, Sequence[str]], loading: Loading) -> Tab:
        """A new tab on a running model. What its URL asks for waits for the page's greeting."""
        tab = Tab(
            Workspace(self.pool, loading, self.hosting, link=link_reader.parse(params), meter=self.meter),
            self.tabs.clock,
        )
        self.tabs.add(tab, owner)
        return tab

    def admit(self, owner: str, params: Mapping[str, Sequence[str]], loading: Loading) -> Tab | Waiting:
        """A new tab, or a place in line where the class is full."""
        with self.entrance:  # two at the door must not both see the last place free
            waiting = self.ask(owner)
            if waiting is not None:
                return waiting
            self.door.leave(owner)
            return self.open_tab(owner, params, loading)

    def ask(self, owner: str) -> Waiting | None:
        """Where somebody stands in line; None where they may come in."""
        most = self.hosting.max_sessions
        return self.door.ask(owner, most - self.tabs.in_use()) if most else None

    def take_back(self, sid: str, owner: str) -> bool:
        """Whether this one may go on with a session whose place was kept."""
        if not self.tabs.keeps_place(sid) or self.tab(sid, owner) is None:
            return False
        self.door.leave(owner)
        return True

    def tab(self, sid: str | None, owner: str) -> Tab | None:
        """The tab of this name, if it is this owner's and can be used."""
        if sid is None or self.tabs.claim(sid, owner) != "yours":
            return None
        tab = self.tabs.get(sid)
        return tab if tab is not None and tab.is_alive else None

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
        if claim == "yours" and known.is_alive:
            self.tabs.drop(tab.sid)
            return known, wire
        saved = known.workspace.saved()  # a live tab has it, or its engine died: this one gets a copy
        if claim == "yours":
            self.tabs.drop(sid)
        args: dict[str, object] = {"recipe": to_json(saved)} if saved else {}
        return tab, wire.with_args(greeting.n, args)

    def kv_bytes(self) -> int:
        """Bytes of keys and values held for all tabs."""
        return sum(tab.kv_bytes for tab in self.tabs.tenants())

    def reap(self) -> None:
        """Free what nobody uses, and what is held beyond the budget."""
        self.tabs.reap()
        self._shed()
        self.pool.close_unused()

    def _shed(self) -> None:
        """Over the budget, the caches that were not touched for longest go; the next touch rebuilds them."""
        over = self.kv_bytes() - self.hosting.kv_bytes if self.hosting.kv_bytes else 0
        for tab in sorted(self.tabs.tenants(), key=lambda tab: tab.last_used):
            held = tab.kv_bytes
            if over > 0 and held and tab.job is None and tab.sleep():
                over -= held


def _engine_config(hosting: Hosting) -> EngineConfig:
    """A class shares prompts; one person at home wants to see what a prefill costs every time."""
    config = EngineConfig() if hosting.is_hosted else EngineConfig(prefix_bytes=0)
    return replace(config, model=hosting.model) if hosting.model else config


@st.cache_resource(show_spinner=False)
def runtime() -> Runtime:
    """The one runtime of this process."""
    hosting = from_environment(os.environ)
    made = Runtime(EnginePool(_engine_config(hosting)), Registry(Limits(grace_s=hosting.grace_s)), hosting)
    start_reaper(made.reap, REAP_EVERY_S)
    if hosting.metrics_port:
        serve(made, hosting.metrics_port)
    atexit.register(made.pool.close)
    return made


def _release(lease: Lease) -> None:
    """Called by Streamlit on its event loop: must not wait."""
    runtime().tabs.release(lease)


@st.cache_resource(scope="session", show_spinner=False, on_release=_release)
def hold(sid: str, owner: str) -> Lease:
    """This connection's hold on a session. Streamlit forgets it, and tells us, when the connection is gone."""
    return Lease(sid, owner)
