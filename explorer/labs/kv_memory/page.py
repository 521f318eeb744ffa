"""KV cache memory: a calculator for any model's cache, then the live session's own cache, number by number."""

from __future__ import annotations

from explorer.labs import live, shell
from explorer.labs.kv_memory import calculator, moved_keys, paging, queries, three_numbers
from explorer.labs.model_choice import choose_model


def page() -> None:
    """Calculate first, which needs no model; then look at the run on the Step page, if there is one."""
    shell.lab("KV cache memory", "What does the cache of keys and values take, how many fit, and what is in it?")
    stage = shell.stage()
    with stage.controls:
        chosen = choose_model(needs_weights=False)
        asked = calculator.settings(chosen) if chosen is not None else None
    if chosen is not None and asked is not None:
        calculator.show(chosen, asked, stage)
        calculator.more(chosen, asked)
        part = shell.details(
            "Allocation (PagedAttention): three ways to hand the memory out", key="kv_paging", controls=paging.CONTROLS
        )
        if part:
            with part:
                paging.show(asked.room)
    _your_run()


def _your_run() -> None:
    shell.section("The cache of your run")
    session = live.session_or_offer("This part")
    if session is None:
        return
    three_numbers.say(session)
    part = shell.details("Three numbers for one cache, and what this process holds", key="kv_three")
    if part:
        with part:
            three_numbers.show(session)
    part = shell.details(
        "Do a token's key and value depend on that token alone?", key="kv_moved", controls=moved_keys.CONTROLS
    )
    if part:
        with part:
            moved_keys.show(session)
    part = shell.details("Queries are not cached, and why", key="kv_queries")
    if part:
        with part:
            queries.show(session)
