"""The one bridge between pages and engines: models, sessions by tab, and what happens when a tab goes away."""

from __future__ import annotations

import asyncio
import atexit
import logging
import os
import threading
from collections.abc import Mapping, Sequence
from concurrent.futures import Future
from dataclasses import dataclass, field, replace

from engine.config import EngineConfig
from engine.serving.counters import EngineCounters, add_up
from explorer.engines.pool import EnginePool, Loading
from explorer.following.code import code_attempts
from explorer.following.commands import lead_commands
from explorer.following.leads import Leads
from explorer.gate.attempts import Attempts
from explorer.hosting.admission import Admission
from explorer.hosting.connections import CONNECTIONS, is_elsewhere
from explorer.hosting.health import Health
from explorer.hosting.leases import Lease, Limits, Registry
from explorer.hosting.limits import Hosting, NotHere, from_environment
from explorer.hosting.prometheus import serve
from explorer.hosting.waiting_line import Waiting, WaitingLine
from explorer.links import read
from explorer.live.commands import Outcome
from explorer.live.lines import Lines
from explorer.live.tab import Tab
from explorer.operations.operation import Args
from explorer.workspace.workspace import Workspace

log = logging.getLogger(__name__)

REAP_EVERY_S = 5.0


@dataclass(slots=True, eq=False)
class Runtime:
    """Everything that outlives a connection.

    loop  where tabs live: the server's own, once it has started
    """

    pool: EnginePool
    tabs: Registry[Tab]
    hosting: Hosting = field(default_factory=Hosting)
    waiting_line: WaitingLine = field(default_factory=WaitingLine)
    entrance: threading.Lock = field(default_factory=threading.Lock)
    attempts: Attempts = field(default_factory=Attempts)
    follow_attempts: Attempts = field(default_factory=code_attempts)
    leads: Leads = field(default_factory=Leads)
    lines: Lines = field(default_factory=Lines)
    loop: asyncio.AbstractEventLoop | None = None
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
        tab.own = lead_commands(self.leads, tab)
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
        if not self.tabs.keeps_place(sid) or self.tabs.claim(sid, owner) != "yours":
            return False
        self.waiting_line.leave(owner)
        return True

    def tab_of(self, owner: str) -> Tab | None:
        """The tab that this owner has, or had when its connection was lost."""
        sid = self.tabs.of_owner(owner)
        return self.tabs.get(sid) if sid is not None and self.tabs.claim(sid, owner) == "yours" else None

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

    async def reap_for_good(self) -> None:
        """Free what nobody uses, now and then. What is held beyond the budget, the engine frees by itself."""
        while True:
            await asyncio.sleep(REAP_EVERY_S)
            try:
                self.tabs.reap()
                self.leads.reap()
                await asyncio.to_thread(self.pool.close_unused)
            except Exception:
                log.exception("freeing unused sessions failed")

    def perform(self, tab: Tab, op: str, args: Args) -> Outcome:
        """One of the page's commands for a lab, whose script runs in a thread of its own: waits for its end."""
        assert self.loop is not None, "the server has started"
        return asyncio.run_coroutine_threadsafe(tab.perform(op, args), self.loop).result()


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
    if hosting.metrics_port:
        serve(made, hosting.metrics_port)
    atexit.register(made.pool.close)
    return made


def hold(sid: str, owner: str, connection: str | None) -> None:
    """Let a connection hold a session for its owner. When it is gone, the session is released."""
    lease, tabs = Lease(sid, owner), runtime().tabs
    CONNECTIONS.keep(connection, lease, lambda: tabs.release(lease))
