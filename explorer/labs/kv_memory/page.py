"""KV cache memory: a calculator for any model's cache, then the live session's own cache, number by number."""

from __future__ import annotations

from explorer.labs import live, shell
from explorer.labs.kv_memory import calculator, moved_keys, paging, queries, three_numbers
from explorer.labs.model_choice import choose_model
from explorer.say import words_beside

say = words_beside(__file__)


def page() -> None:
    """Calculate first, which needs no model; then look at the run on the Step page, if there is one."""
    shell.lab(say("page.title"), say("page.question"))
    stage = shell.stage()
    with stage.controls:
        chosen = choose_model(needs_weights=False)
        asked = calculator.settings(chosen) if chosen is not None else None
    if chosen is not None and asked is not None:
        calculator.show(chosen, asked, stage)
        calculator.more(chosen, asked)
        part = shell.fold(say("page.allocation"), key="kv_paging", controls=paging.CONTROLS)
        with part:
            sequences = paging.ask()
            if part.open:
                paging.show(sequences, asked.room)
    _your_run()


def _your_run() -> None:
    shell.section(say("page.yours"))
    session = live.session_or_offer(say("page.needs"))
    if session is None:
        return
    three_numbers.agreement(session)
    part = shell.details(say("page.three_numbers"), key="kv_three")
    if part:
        with part:
            three_numbers.show(session)
    part = shell.fold(say("page.moved"), key="kv_moved", controls=moved_keys.CONTROLS)
    with part:
        change = moved_keys.ask()
        if part.open:
            moved_keys.show(session, change)
    part = shell.details(say("page.queries"), key="kv_queries")
    if part:
        with part:
            queries.show(session)
