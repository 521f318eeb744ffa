"""The commands of leading, which a tab carries out itself, as it does play and pause."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from urllib.parse import urlsplit

import segno

from explorer.following.leading import Leading
from explorer.following.leads import Leads
from explorer.following.question import read_question
from explorer.live.commands import Outcome
from explorer.live.tab import Tab
from explorer.operations import checked
from explorer.operations.operation import Args, plain

MOST_ADDRESS = 300  # characters: a QR picture of more is not read from the back row
FULL = "Too many people lead on this server just now. Try again in a few minutes."


def lead_commands(leads: Leads, tab: Tab) -> Mapping[str, Callable[[Args], Outcome]]:
    """By name, for one tab."""
    return {
        "lead": lambda args: _lead(leads, tab, args),
        "lead_end": lambda args: _end(leads, tab),
        "ask_class": lambda args: _with_lead(leads, tab, lambda leading: leading.ask(read_question(args))),
        "reveal": lambda args: _with_lead(leads, tab, Leading.reveal),
        "ask_no_more": lambda args: _with_lead(leads, tab, lambda leading: leading.ask(None)),
    }


def _with_lead(leads: Leads, tab: Tab, act: Callable[[Leading], None]) -> Outcome:
    leading = leads.of(tab)
    if leading is None:
        return Outcome(error=("NotHere", "This page leads no class now. Start leading first."))
    try:
        act(leading)
    except checked.BadCommand as error:
        return Outcome(error=("BadCommand", str(error)))
    return Outcome(value=plain())


def _lead(leads: Leads, tab: Tab, args: Args) -> Outcome:
    """Begin to lead, or go on. `address` is the page's own, without a query: it becomes the link, and its picture."""
    try:
        address = _address(args.get("address"))
    except checked.BadCommand as error:
        return Outcome(error=("BadCommand", str(error)))
    leading = leads.begin(tab)
    if leading is None:
        return Outcome(error=("NotHere", FULL))
    link = f"{address}?follow={leading.code}"
    rows = ["".join("1" if dark else "0" for dark in row) for row in segno.make(link, micro=False).matrix]
    return Outcome(value=plain(code=leading.code, link=link, qr=rows))


def _end(leads: Leads, tab: Tab) -> Outcome:
    leads.end(tab)
    return Outcome(value=plain())


def _address(value: object) -> str:
    text = checked.text(value, "address", MOST_ADDRESS)
    parts = urlsplit(text)
    if parts.scheme not in ("http", "https") or not parts.netloc or parts.query or parts.fragment:
        raise checked.BadCommand(f"address must be the page's own, without a query, got {checked.short(text)}.")
    return text
