"""The library: a calculator for any model's cache, then the live session's own cache, number by number."""

from __future__ import annotations

from explorer.labs import live, shell
from explorer.labs.kv_memory import calculator, moved_keys, paging, queries, three_numbers
from explorer.labs.model_choice import choose_model


def page() -> None:
    """Calculate first, which needs no model; then look at the run on the Step page, if there is one."""
    shell.lab("KV cache memory", "What does the cache of keys and values take, how many fit, and what is in it?")
    chosen = choose_model(needs_weights=False)
    if chosen is not None:
        settings = calculator.show(chosen)
        paging.show(settings)
    shell.section("The cache of your run", "The rest of this page looks at the session on the Step page.")
    session = live.session_or_offer("This part")
    if session is not None:
        three_numbers.show(session)
        moved_keys.show(session)
        queries.show(session)
