"""How heavy work and steps share the time, in numbers alone: no engine, no clock."""

from __future__ import annotations

import pytest

from engine.serving.heavy_share import HALF_LIFE_MS, HEAVY_RATIO, LIGHT_MS, REMEMBERED, Alternation, SpentTime


def test_what_an_owner_had_is_half_forgotten_after_a_half_life() -> None:
    spent = SpentTime()
    spent.add("a", 800.0, 0.0)
    spent.add("a", 100.0, HALF_LIFE_MS)
    assert spent.of("a", HALF_LIFE_MS) == pytest.approx(500.0)
    assert spent.of("a", 3 * HALF_LIFE_MS) == pytest.approx(125.0)
    assert spent.of("b", HALF_LIFE_MS) == 0.0


def test_whoever_had_much_is_a_light_user_again_after_a_while() -> None:
    spent = SpentTime()
    spent.add("a", 3 * LIGHT_MS, 0.0)
    assert not spent.is_light("a", HALF_LIFE_MS)
    assert spent.is_light("a", 2 * HALF_LIFE_MS)


def test_a_bounded_number_of_owners_is_remembered() -> None:
    spent = SpentTime()
    for owner in range(REMEMBERED + 5):
        spent.add(str(owner), 1.0, 0.0)
    assert (len(spent._spent), spent.of("4", 0.0), spent.of("5", 0.0)) == (REMEMBERED, 0.0, 1.0)


def shared(piece_ms: float, step_ms: float, *, is_light: bool) -> tuple[float, float]:
    """What heavy work and steps had of a long time in which somebody always waited for a step."""
    account, heavy, steps = Alternation(), 0.0, 0.0
    while heavy + steps < 100_000:
        account.worked(piece_ms, is_light=is_light)
        heavy += piece_ms
        while account.owed_ms > 0:
            account.stepped(step_ms)
            steps += step_ms
    return heavy, steps


@pytest.mark.parametrize("piece_ms", [2.0, 12.0, 40.0])
@pytest.mark.parametrize("step_ms", [20.0, 150.0])
def test_heavy_work_has_its_share_and_no_more_whatever_the_pieces_take(piece_ms: float, step_ms: float) -> None:
    heavy, steps = shared(piece_ms, step_ms, is_light=False)
    assert steps / heavy == pytest.approx(HEAVY_RATIO, rel=0.02)
    heavy, steps = shared(piece_ms, step_ms, is_light=True)
    assert steps / heavy == pytest.approx(1.0, rel=0.02)


def test_what_ran_while_nobody_stepped_is_not_held_against_it() -> None:
    account = Alternation()
    account.stepped(50.0)
    for _ in range(1_000):
        account.worked(10.0, is_light=False)
    account.stepped(50.0)
    assert account.owed_ms == 90.0, "the newest piece alone: somebody may have waited for it"
