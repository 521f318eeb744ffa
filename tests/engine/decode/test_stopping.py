"""Why decoding ends: each rule alone, their order, and the text that may be shown."""

from __future__ import annotations

import codecs
from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import pytest

from engine.config import StopRules
from engine.decode.stopping import StopMatch, StopState, check_stops, search_stops, split_held
from engine.records import FinishReason, StopCheck

RULES = StopRules()
ORDER = ["nan", "end_id", "stop_string", "max_new_tokens", "context_limit", "kv_bytes", "user", "disconnect"]


def after(*token_ids: int, text: str = "", prompt: int = 4, checked: int = 0) -> StopState:
    return StopState(generated_ids=token_ids, text=text, seq_len=prompt + len(token_ids), checked=checked)


def decide(
    state: StopState, rules: StopRules = RULES, *, end_ids: Sequence[int] = (2,), context_limit: int | None = 1024
) -> tuple[dict[str, StopCheck], FinishReason | None]:
    checks, reason, _ = check_stops(state, rules, end_ids=end_ids, context_limit=context_limit)
    return {check.rule: check for check in checks}, reason


def find(text: str, stops: Sequence[str], checked: int) -> StopMatch | None:
    return search_stops(text, stops, checked=checked).match


def split(text: str, stops: Sequence[str], *, checked: int = 0, finished: bool = False) -> tuple[str, str]:
    return split_held(text, search_stops(text, stops, checked=checked), finished=finished)


def first_stop(pieces: Sequence[bytes], rules: StopRules) -> tuple[int, str] | None:
    """Feed tokens one by one, text from bytes; (tokens drawn, text shown) where a stop string ends it."""
    decoder, text = codecs.getincrementaldecoder("utf-8")(), ""
    for count, piece in enumerate(pieces, start=1):
        checked, text = len(text), text + decoder.decode(piece)
        state = after(*range(100, 100 + count), text=text, checked=checked)
        if decide(state, rules)[1] == "stop_string":
            return count, split(text, rules.stop_strings, checked=checked, finished=True)[0]
    return None


def shown_by_token(pieces: Sequence[str], *stops: str) -> list[str]:
    """What the screen holds after each token, and at the end."""
    texts = ["".join(pieces[: count + 1]) for count in range(len(pieces))]
    return [split(text, stops)[0] for text in texts] + [split(texts[-1], stops, finished=True)[0]]


# --- EOS tokens


def test_every_end_id_of_the_model_stops_and_the_label_names_the_one_that_did() -> None:
    for end_id in (1, 106):
        checks, reason = decide(after(5, end_id), end_ids=(1, 106))
        assert reason == "end_id"
        assert checks["end_id"].label == f"EOS token {end_id}"
        assert checks["end_id"].nearness == 1.0


def test_an_end_id_earlier_in_the_text_or_in_the_prompt_does_not_stop() -> None:
    checks, reason = decide(after(2, 5))
    assert reason is None
    assert (checks["end_id"].armed, checks["end_id"].fired, checks["end_id"].label) == (True, False, "EOS token 2")


def test_several_end_ids_are_all_named_while_none_has_come() -> None:
    assert decide(after(5), end_ids=(1, 106))[0]["end_id"].label == "EOS tokens 1, 106"


def test_end_ids_switched_off_are_seen_but_do_not_stop() -> None:
    checks, reason = decide(after(2), StopRules(use_end_ids=False))
    assert reason is None
    assert (checks["end_id"].armed, checks["end_id"].fired) == (False, False)
    assert checks["end_id"].state == "off; token 2 is an EOS token"


def test_a_model_without_end_ids_goes_on() -> None:
    checks, reason = decide(after(2), end_ids=())
    assert reason is None
    assert (checks["end_id"].armed, checks["end_id"].state) == (False, "the model declares no EOS token")


def test_nearness_of_the_end_ids_is_their_probability() -> None:
    check = decide(replace(after(5), end_probability=0.25))[0]["end_id"]
    assert (check.nearness, check.state) == (0.25, "probability 0.25 in this step")


# --- stop strings


@pytest.mark.parametrize(
    ("pieces", "stop", "tokens", "shown"),
    [
        ([b"ok", b"#", b"##"], "###", 3, "ok"),
        ([b"?\n"], "\n", 1, "?"),
        ([b"a", b"b c"], "b", 2, "a"),
        ([b"Hi", b"\nUs", b"er: x"], "User:", 3, "Hi\n"),
        ([b"say <", b"end>", b"!"], "<end>", 2, "say "),
        ([b"x", b"\xe9", b"\xb0", b"\xbb y"], "鰻", 4, "x"),
        ([b"x\xf0\x9f", b"\xa6\x8a"], "🦊", 2, "x"),
        ([b"e", b"\xcc\x81!"], "e\u0301", 2, ""),
        ([b"##", b"# ###"], "###", 2, ""),
    ],
)
def test_a_stop_string_ends_it_and_is_not_shown(pieces: list[bytes], stop: str, tokens: int, shown: str) -> None:
    assert first_stop(pieces, StopRules(stop_strings=(stop,))) == (tokens, shown)


def test_a_stop_string_that_began_in_the_prompt_does_not_stop() -> None:
    # The prompt "... User:" or "... Us" is no part of the text; what is generated must spell the whole string.
    assert first_stop([b" hello", b" you"], StopRules(stop_strings=("User:",))) is None
    assert first_stop([b"er:", b" you"], StopRules(stop_strings=("User:",))) is None
    assert first_stop([b"er: ", b"User", b":"], StopRules(stop_strings=("User:",))) == (3, "er: ")


def test_empty_stop_strings_are_ignored() -> None:
    checks, reason = decide(after(5, text="abc"), StopRules(stop_strings=("", "")))
    assert reason is None
    assert not checks["stop_string"].armed
    assert first_stop([b"ab", b"c"], StopRules(stop_strings=("", "c"))) == (2, "ab")
    assert split("abc", ["", "cd"]) == ("ab", "c")


def test_a_stop_string_that_spells_a_special_token_stops_though_specials_may_be_hidden() -> None:
    rules = StopRules(use_end_ids=False, stop_strings=("<|im_end|>",))
    assert first_stop([b"Hi", b"<|im_end|>"], rules) == (2, "Hi")


def test_the_stop_string_that_begins_first_wins() -> None:
    assert first_stop([b"a b c"], StopRules(stop_strings=("c", "b"))) == (1, "a ")
    check = decide(after(5, text="a b c"), StopRules(stop_strings=("c", "b")))[0]["stop_string"]
    assert (check.label, check.state) == ('stop string "b"', "found after 2 characters")


def test_a_stop_string_that_was_there_before_the_rule_does_not_end_it_backwards() -> None:
    assert find("the end. And", ["end"], checked=9) is None
    assert find("the end. And the end", ["end"], checked=9) == ("end", 17)
    assert find("the end", ["end"], checked=6) == ("end", 4)  # its last letter is new
    assert split("the end. A", ["end"], checked=9) == ("the end. A", "")


def test_nearness_of_a_stop_string_is_the_share_of_it_already_there() -> None:
    check = decide(after(5, text="so ##"), StopRules(stop_strings=("###", "\n\n")))[0]["stop_string"]
    assert check.nearness == pytest.approx(2 / 3)
    assert check.state == '2 of 3 characters of "###"'
    assert check.label == 'stop strings "###", "\\n\\n"'


def test_text_that_may_still_become_a_stop_string_is_held_and_flushed() -> None:
    assert shown_by_token(["ok", "#", "##"], "###") == ["ok", "ok", "ok", "ok"]
    assert shown_by_token(["ok", "#", " no"], "###") == ["ok", "ok", "ok# no", "ok# no"]
    assert shown_by_token(["ok", "##"], "###") == ["ok", "ok", "ok##"]
    assert shown_by_token(["?\n"], "\n") == ["?", "?"]
    assert shown_by_token(["a", "ab", "abc"], "abac") == ["", "a", "aababc", "aababc"]


def test_the_longest_possible_beginning_is_held() -> None:
    assert split("xaba", ["abab"]) == ("x", "aba")
    assert split("x<|im", ["|im_x", "<|im_end|>"]) == ("x", "<|im")
    assert split("stop", ["stopped", "opening"]) == ("", "stop")


@pytest.mark.parametrize("seed", range(50))
def test_what_is_shown_never_has_to_be_taken_back(seed: int) -> None:
    rng = np.random.default_rng(seed)
    pieces = ["".join(rng.choice(list("ab#"), size=int(rng.integers(1, 4)))) for _ in range(12)]
    stops = ["".join(rng.choice(list("ab#"), size=int(rng.integers(1, 5)))) for _ in range(2)]
    shown, text = "", ""
    for piece in pieces:
        text += piece
        now, held = split(text, stops)
        assert now + held == text
        assert now.startswith(shown)
        assert not any(stop in now for stop in stops)
        shown = now
        if any(stop in text for stop in stops):
            assert len(now) == min(text.find(stop) for stop in stops if stop in text)
            break
        assert not held or any(stop.startswith(held) and stop != held for stop in stops)
        assert split(text, stops, finished=True) == (text, "")


# --- counts and limits


def test_max_new_tokens_counts_new_tokens_alone() -> None:
    rules = StopRules(max_new_tokens=3)
    assert decide(after(5, 6, prompt=500), rules)[1] is None
    checks, reason = decide(after(5, 6, 7, prompt=500), rules)
    assert reason == "max_new_tokens"
    assert (checks["max_new_tokens"].label, checks["max_new_tokens"].nearness) == ("max new tokens 3", 1.0)


def test_max_new_tokens_says_how_near_it_is() -> None:
    check = decide(after(*range(10, 22)))[0]["max_new_tokens"]
    assert (check.state, check.nearness) == ("12 of 256 new tokens", 12 / 256)


def test_a_prompt_of_1020_in_a_context_of_1024_gets_4_new_tokens() -> None:
    reasons = [decide(after(*range(10, 10 + new), prompt=1020))[1] for new in range(1, 5)]
    assert reasons == [None, None, None, "context_limit"]
    check = decide(after(10, 11, 12, 13, prompt=1020))[0]["context_limit"]
    assert check.state == "1,024 of 1,024 tokens; rule: prompt + new tokens <= limit"


def test_a_model_that_declares_no_limit_has_an_unarmed_rule() -> None:
    checks, reason = decide(after(5, prompt=10**6), context_limit=None)
    assert reason is None
    assert checks["context_limit"] == StopCheck(
        "context_limit", "context limit", False, False, "the model declares no limit", None
    )


@pytest.mark.parametrize(("held", "fired"), [(800, False), (900, False), (901, True), (1000, True), (1100, True)])
def test_the_kv_budget_stops_before_the_cache_outgrows_it(held: int, fired: bool) -> None:
    state = replace(after(5), kv_bytes=held, kv_bytes_per_token=100)
    checks, reason = decide(state, StopRules(max_kv_bytes=1000))
    assert (reason == "kv_bytes") == checks["kv_bytes"].fired == fired
    assert checks["kv_bytes"].nearness == (1.0 if fired else held / 1000)
    assert checks["kv_bytes"].state == f"{held:,} of 1,000 bytes; the next token adds 100"


def test_no_kv_budget_is_an_unarmed_rule() -> None:
    checks, reason = decide(replace(after(5), kv_bytes=10**12))
    assert reason is None
    assert not checks["kv_bytes"].armed


# --- flags, order, completeness


@pytest.mark.parametrize(
    ("change", "reason"),
    [({"finite": False}, "nan"), ({"user_stop": True}, "user"), ({"disconnected": True}, "disconnect")],
)
def test_a_failure_a_person_or_a_lost_page_stops_it(change: dict[str, bool], reason: str) -> None:
    calm, none = decide(after(5))
    assert none is None
    assert (calm[reason].fired, calm[reason].nearness) == (False, None)
    checks, fired = decide(StopState((5,), "", 5, **change))
    assert fired == reason
    assert (checks[reason].fired, checks[reason].nearness) == (True, 1.0)


def test_every_record_lists_every_rule_in_order_of_precedence() -> None:
    for state in (after(), after(5), after(2, text="x")):
        checks, _, _ = check_stops(state, RULES, end_ids=(), context_limit=None)
        assert [check.rule for check in checks] == ORDER
        assert all(check.state and check.label for check in checks)


def test_the_first_rule_in_order_gives_the_reason_and_the_others_still_say_they_fired() -> None:
    state = StopState((2,), "x", 9, kv_bytes=99, finite=False, user_stop=True, disconnected=True)
    rules = StopRules(max_new_tokens=1, stop_strings=("x",), max_kv_bytes=10)
    checks, _, _ = check_stops(state, rules, end_ids=(2,), context_limit=9)
    assert [check.fired for check in checks] == [True] * 8
    remedies: list[tuple[StopState, StopRules, tuple[int, ...], int | None]] = [
        (state, rules, (2,), 9),
        (replace(state, finite=True), rules, (2,), 9),
        (replace(state, finite=True), rules, (), 9),
        (replace(state, finite=True), replace(rules, stop_strings=()), (), 9),
        (replace(state, finite=True), StopRules(max_kv_bytes=10), (), 9),
        (replace(state, finite=True), StopRules(max_kv_bytes=10), (), None),
        (replace(state, finite=True), StopRules(), (), None),
        (replace(state, finite=True, user_stop=False), StopRules(), (), None),
    ]
    reasons = [check_stops(s, r, end_ids=e, context_limit=c)[1] for s, r, e, c in remedies]
    assert reasons == ORDER


@pytest.mark.parametrize("seed", range(20))
def test_nearness_stays_within_0_and_1_and_reaches_1_only_when_fired(seed: int) -> None:
    rng = np.random.default_rng(seed)
    ids = tuple(int(i) for i in rng.integers(0, 20, int(rng.integers(1, 30))))
    state = StopState(ids, "ab" * len(ids), len(ids) + 7, kv_bytes=int(rng.integers(0, 2000)), kv_bytes_per_token=100)
    rules = StopRules(max_new_tokens=20, stop_strings=("bc",), max_kv_bytes=1500)
    for check in check_stops(state, rules, end_ids=(3,), context_limit=30)[0]:
        assert check.nearness is None or 0 <= check.nearness <= 1
        assert (check.nearness == 1) == check.fired
