"""Who runs next, by names and numbers alone: no model, no thread, no torch."""

from __future__ import annotations

from engine.serving.scheduler import PATIENCE, REMEMBERED, Scheduler, Turn, Waiting


def steps(names: str, **how: bool) -> list[Waiting]:
    return [Waiting(name, "step", **how) for name in names]


def works(names: str) -> list[Waiting]:
    return [Waiting(name, "work") for name in names]


def test_all_who_wait_for_a_token_share_one_forward() -> None:
    assert Scheduler(64).plan(steps("abc")) == Turn(batches=(("a", "b", "c"),), brief=(), work=())


def test_steps_and_work_go_side_by_side_in_one_turn() -> None:
    assert Scheduler(64).plan([*works("x"), *steps("a")]) == Turn((("a",),), (), ("x",))


def test_what_is_brief_is_told_apart_from_long_work_and_goes_round_by_itself() -> None:
    scheduler = Scheduler(64)
    waiting = [*works("x"), *(Waiting(name, "brief") for name in "bc")]
    assert scheduler.plan(waiting) == Turn((), ("b", "c"), ("x",))
    scheduler.served("b")  # the time was up after one
    assert scheduler.plan(waiting).brief == ("c", "b")


def test_nobody_waiting_is_an_empty_turn() -> None:
    assert Scheduler(64).plan([]) == Turn((), (), ())


def test_five_sessions_in_forwards_of_two_take_turns() -> None:
    scheduler = Scheduler(2)
    served = [scheduler.plan(steps("abcde")).batches[0] for _ in range(5)]
    assert served == [("a", "b"), ("c", "d"), ("e", "a"), ("b", "c"), ("d", "a")]


def test_who_was_just_served_and_asks_again_stands_behind_who_still_waits() -> None:
    scheduler = Scheduler(1)
    scheduler.plan(steps("a"))
    assert scheduler.plan(steps("ab")).batches == (("b",),)


def test_clicks_go_before_autoplay_and_autoplay_fills_what_is_left() -> None:
    waiting = [*steps("ab", auto=True), *steps("cd")]
    assert Scheduler(3).plan(waiting).batches == (("c", "d", "a"),)


def test_autoplay_that_was_passed_over_long_enough_counts_as_a_click() -> None:
    scheduler = Scheduler(1)
    waiting = [*steps("a", auto=True), *steps("b")]
    served = [scheduler.plan(waiting).batches[0][0] for _ in range(PATIENCE + 2)]
    assert served == ["b"] * PATIENCE + ["a", "b"]


def test_a_solo_session_steps_in_a_forward_of_its_own() -> None:
    assert Scheduler(64).plan([*steps("ab"), *steps("s", solo=True)]).batches == (("a", "b"), ("s",))


def test_solo_sessions_wait_for_each_other_and_not_the_class_for_them_all() -> None:
    scheduler = Scheduler(64)
    waiting = [*steps("a"), *steps("st", solo=True)]
    assert [scheduler.plan(waiting).batches for _ in range(2)] == [(("a",), ("s",)), (("a",), ("t",))]


def test_work_goes_round_by_who_had_a_piece_done_longest_ago() -> None:
    scheduler = Scheduler(64)
    assert scheduler.plan(works("xyz")).work == ("x", "y", "z")
    scheduler.served("x")  # the time of the turn was up after one piece
    assert scheduler.plan(works("xyz")).work == ("y", "z", "x")


def test_a_scheduler_remembers_a_bounded_number_of_sessions() -> None:
    scheduler = Scheduler(64)
    scheduler.served(str(i) for i in range(REMEMBERED + 5))
    assert len(scheduler._last_served) == REMEMBERED


def look(name: str, spent_ms: float = 0.0, *, is_begun: bool = False) -> Waiting:
    return Waiting(name, "look", spent_ms=spent_ms, is_begun=is_begun)


def test_heavy_work_of_whoever_had_least_of_it_goes_first() -> None:
    waiting = [Waiting("much", "work", spent_ms=900), look("some", 500), Waiting("none", "work")]
    assert Scheduler(64).plan(waiting).work == ("none", "some", "much")


def test_of_many_looks_one_has_the_place_until_it_is_over() -> None:
    scheduler = Scheduler(64)
    assert scheduler.plan([look("a", 70), look("b", 20), look("c", 50)]).work == ("b",)
    assert scheduler.plan([look("a"), look("b", 20, is_begun=True), look("c")]).work == ("b",)


def test_looks_of_equals_take_the_place_in_turn() -> None:
    scheduler, served = Scheduler(64), []
    for _ in range(6):
        (name,) = scheduler.plan([look(name) for name in "xyz"]).work
        served.append(name)
        scheduler.served(name)
    assert served == list("xyzxyz")


def test_a_prompt_goes_before_a_look_that_had_more_however_many_looks_wait() -> None:
    looks = [look("begun", 90, is_begun=True), *(look(name) for name in "abcdef")]
    for spent_ms, order in ((0, ("prompt", "begun")), (80, ("prompt", "begun")), (100, ("begun", "prompt"))):
        assert Scheduler(64).plan([*looks, Waiting("prompt", "work", spent_ms=spent_ms)]).work == order


def test_where_nobody_had_any_a_prompt_goes_before_looks() -> None:
    assert Scheduler(64).plan([look("a"), Waiting("prompt", "work")]).work == ("prompt", "a")
