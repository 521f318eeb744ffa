"""How a page comes to its tab: the model is loaded, a full class is waited for, an older session is taken up again.

A reload knows the session's name from the tab's own storage. It is taken up where it has no other owner, copied where
another live tab has it, and rebuilt from the recipe where this process never knew it.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable
from dataclasses import dataclass
from urllib.parse import parse_qs

from explorer.engines.pool import Loading
from explorer.hosting.connections import CONNECTIONS
from explorer.hosting.runtime import Runtime, hold
from explorer.links.write import is_server_path
from explorer.live.frame import Json
from explorer.live.messages import Opening
from explorer.live.tab import Tab
from explorer.operations.operation import Args
from explorer.workspace.recipe_json import to_json

log = logging.getLogger(__name__)

LOOK_EVERY_S = 0.2  # how far a model is
ASK_EVERY_S = 1.0  # whether a place is free

CLOSED = "The model could not be loaded. Whoever hosts this class finds the reason in the server's log."

Show = Callable[[dict[str, Json]], None]


@dataclass(frozen=True, slots=True)
class Entered:
    """A tab, and the arguments of the greeting with which its session begins for this page.

    is_copy  of another live tab's session
    """

    tab: Tab
    greeting: Args
    is_copy: bool = False


async def enter(there: Runtime, opening: Opening, connection: str | None, address: str, show: Show) -> Entered:
    """The tab of this page. Meanwhile `show` is given what the page says. Raises NotHere where it may not come in."""
    tab = await _tab(there, opening, connection, address, show)
    entered = _recognised(there, tab, opening)
    hold(entered.tab.sid, opening.owner, connection)
    return entered


async def _tab(there: Runtime, opening: Opening, connection: str | None, address: str, show: Show) -> Tab:
    """The tab of this owner, or the one whose place was kept for whoever knows its name, or a new one."""
    owner = opening.owner
    tab = there.tab_of(owner)
    if tab is not None:
        return tab
    sid = opening.session.sid if opening.session else ""
    params = parse_qs(opening.query, keep_blank_values=True)
    CONNECTIONS.keep(connection, ("line", owner), lambda: there.waiting_line.leave(owner))
    while True:
        if there.take_back(sid, owner) and (known := there.tabs.get(sid)) is not None:
            return known
        loading = await _running_model(there, show)
        try:
            admitted = there.admit(owner, params, loading, address)
        except BaseException:
            there.pool.leave(loading)
            raise
        if isinstance(admitted, Tab):
            show({"place": None})
            return admitted
        there.pool.leave(loading)
        show({"place": {"place": admitted.place, "waiting": admitted.waiting}})
        await asyncio.sleep(ASK_EVERY_S)


async def _running_model(there: Runtime, show: Show) -> Loading:
    """The default model once it runs. Counts as one user of it. Where it cannot be had the page says why, for good."""
    loading = there.pool.request()
    try:
        if not loading.future.done():
            await _watch(there, loading, show)
        error = loading.future.exception()
        if error is not None:
            log.error("no model: %s", error)
            show({"loading": None, "failed": CLOSED if there.hosting.is_hosted else str(error)})
            await asyncio.Event().wait()  # until the connection ends; a new one tries again
    except BaseException:
        there.pool.leave(loading)
        raise
    return loading


async def _watch(there: Runtime, loading: Loading, show: Show) -> None:
    while not loading.future.done():
        words = "" if there.hosting.is_hosted else loading.text  # it may name a file, a repository or a package
        show({"loading": {"model": name_of(loading, there), "text": words, "fraction": round(loading.fraction, 3)}})
        await asyncio.sleep(LOOK_EVERY_S)
    show({"loading": None})


def name_of(loading: Loading, there: Runtime) -> str:
    """A model's name as visitors may read it: where on a shared server it lies is nobody's business."""
    return "" if there.hosting.is_hosted and is_server_path(loading.model) else loading.model


def _recognised(there: Runtime, tab: Tab, opening: Opening) -> Entered:
    """The tab to go on with: a reload knows the name of an older one."""
    remembered = opening.session
    if remembered is None or tab.workspace.branches or remembered.sid == tab.sid:
        return Entered(tab, {"solo": tab.workspace.solo if remembered is None else remembered.solo})
    known = there.tabs.get(remembered.sid)
    claim = there.tabs.claim(remembered.sid, opening.owner)
    if known is None or claim == "unknown":
        recipe = {} if remembered.recipe is None else {"recipe": remembered.recipe}
        return Entered(tab, {"solo": remembered.solo, **recipe})
    if claim == "yours":
        there.tabs.drop(tab.sid)
        return Entered(known, {"solo": known.workspace.solo})
    saved = known.workspace.saved()
    recipe = {} if saved is None else {"recipe": to_json(saved)}
    return Entered(tab, {"solo": known.workspace.solo, **recipe}, is_copy=saved is not None)
