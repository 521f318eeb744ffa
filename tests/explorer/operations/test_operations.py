"""What the page can ask for: each operation does its one thing, and looking moves nothing."""

from __future__ import annotations

import threading

import pytest
import torch

from engine.decode.inspection import logits_at
from engine.errors import ModelNotFound
from explorer.operations import run_steps
from tests.explorer.page_client import Page, prefilled


def test_only_new_steps_are_sent(page):
    prefilled(page)
    page.ok("step")
    assert (page.header["steps_from"], len(page.header["steps"])) == (1, 1)
    page.say()
    assert not {"steps", "tokens", "session", "model", "settings"} & set(page.frames[-1])


def test_a_new_step_brings_its_attention(page):
    prefilled(page)
    page.ok("step")
    weights = page.header["steps"][0]["planes"]["attention"]
    assert weights.shape == (2, 4, 4)
    assert weights.astype(float).sum(-1) == pytest.approx(1, abs=5e-3)


@pytest.mark.parametrize(
    ("op", "args", "kept", "sent", "total"),
    [
        ("rewind", {"step": 1}, 2, 0, 2),
        ("force", {"step": 3, "token_id": 9}, 3, 1, 4),
        ("force", {"step": 1, "token_id": 9}, 1, 1, 2),
        ("fork", {"step": 2}, 3, 0, 3),
        ("settings", {"stop": {"max_new_tokens": 99}}, 3, 1, 4),
        ("prefill", {"prompt": "abc", "mode": "raw"}, 0, 1, 1),
    ],
)
def test_after_a_cut_only_the_records_that_differ_are_sent(page, op, args, kept, sent, total):
    prefilled(page, "abc")
    for _ in range(3):
        page.ok("step")
    epoch, before = page.epoch, list(page.steps)
    page.ok(op, **args)
    assert page.epoch != epoch
    assert (page.header["steps_from"], len(page.header["steps"]), len(page.steps)) == (kept, sent, total)
    assert all(now is then for now, then in zip(page.steps[:kept], before, strict=False))
    assert [s["draw"]["token_id"] for s in page.steps] == [token["id"] for token in page.header["tokens"][3:]]


def test_a_page_that_names_a_forgotten_history_gets_everything(page):
    prefilled(page)
    page.ok("step")
    page.lose()
    page.epoch, page.steps = 3, [{}, {}]
    page.connect()
    page.say()
    assert (page.header["steps_from"], len(page.header["steps"])) == (0, 2)


def test_an_epoch_is_never_reused_over_branches(page):
    prefilled(page)
    seen = [page.epoch]
    for op, args in (
        ("fork", {"step": 0}),
        ("switch", {"branch": 1}),
        ("switch", {"branch": 2}),
        ("rewind", {"step": 0}),
    ):
        page.ok(op, **args)
        seen.append(page.epoch)
    assert len(set(seen)) == len(seen)


def test_another_prompt_of_the_same_length_is_sent_anew(page):
    prefilled(page, "abc")
    scores = page.steps[0]["planes"]["cand_logits"]
    prefilled(page, "xyz")
    assert page.steps[0]["input_ids"] == [t["id"] for t in page.header["tokens"][:3]]
    assert page.steps[0]["planes"]["cand_logits"].tolist() != scores.tolist()


def test_all_runs_of_a_tab_take_its_share_of_the_engine(page):
    prefilled(page)
    page.ok("step")
    page.ok("fork", step=1)
    workspace = page.tab.workspace
    assert [branch.session.owner for branch in workspace.branches] == [workspace.sid] * 2


def test_a_fork_leaves_the_run_it_left_alone(page):
    prefilled(page)
    page.ok("step")
    page.ok("step")
    left = page.drawn
    page.ok("fork", step=1)
    page.ok("force", step=1, token_id=42)
    page.ok("step")
    assert page.drawn[:2] == [left[0], 42]
    branches = page.header["session"]["branches"]
    assert [(b["id"], b["parent"], b["at"], b["steps"]) for b in branches] == [(1, None, None, 3), (2, 1, 1, 3)]
    page.ok("switch", branch=1)
    assert page.drawn == left


def test_forcing_an_older_token_rewinds_to_it_first(page):
    prefilled(page)
    for _ in range(3):
        page.ok("step")
    page.ok("force", step=1, token_id=42)
    assert [step["forced"] for step in page.steps] == [False, True]
    assert page.header["tokens"][-1]["role"] == "forced"
    assert page.header["session"]["recipe"]["forced"] == [1]


def test_a_failed_prefill_keeps_the_old_run(page):
    prefilled(page, "first")
    page.ask("prefill", prompt="y" * 2000, mode="raw")
    assert page.header["session"]["prompt"] == "first"
    page.ok("prefill", prompt="second", mode="raw")
    assert (page.header["session"]["prompt"], len(page.steps)) == ("second", 1)
    assert len(page.header["session"]["branches"]) == 1


def test_a_new_prompt_keeps_the_settings(page):
    page.ok("settings", sampling={"temperature": 0.5}, seed=3)
    prefilled(page)
    assert page.header["session"]["seed"] == 3
    page.ok("settings", stop={"max_new_tokens": 2})
    page.ok("reset")
    assert page.header["session"] is None
    prefilled(page, "again")
    session = page.header["session"]
    assert (session["sampling"]["temperature"], session["seed"], session["stop"]["max_new_tokens"]) == (0.5, 3, 2)


def test_half_a_character_in_a_prompt_is_replaced_and_said(page):
    value = page.ok("prefill", prompt="a\ud83d", mode="raw")
    assert page.header["session"]["prompt"] == "a\ufffd"
    assert any("surrogate" in note for note in value["notes"])


def test_looking_moves_nothing(page):
    prefilled(page, "abcd")
    for _ in range(3):
        page.ok("step")
    before = (page.header["session"]["recipe"], page.epoch)
    what_if = page.ok("what_if", step=1, sampling={"temperature": 0})
    assert what_if["stages"][-1]["kept"] == 1
    assert what_if["planes"]["cand_ids"].tolist() == page.steps[1]["planes"]["cand_ids"].tolist()
    asked = page.ok("ask", step=1, text="a")["readings"]
    assert [one["piece"]["text"] for one in asked] == ["a"]
    assert page.ok("attention", step=0)["attention"].shape == (2, 4, 4)
    assert page.ok("attention_layer", step=2, layer=1)["weights"].shape == (4, 6)
    assert page.ok("triangle", layer=1, head=3)["weights"].shape == (4, 4)
    rows = page.ok("prompt_rows")["rows"]
    assert [row["position"] for row in rows] == [0, 1, 2, 3]
    assert rows[3]["actual_next_id"] is None
    assert {str(row["top"][0][0]) for row in rows} <= set(page.header["pieces"])
    assert all(check["passed"] for check in page.ok("check")["checks"])
    assert (page.header["session"]["recipe"], page.epoch) == before


def test_any_token_of_the_vocabulary_has_its_exact_rank_at_any_step(page):
    page.ok("settings", sampling={"top_k": 3, "repetition_penalty": 1.2})
    prefilled(page, "abcd")
    for _ in range(4):
        page.ok("step")
    session = page.tab.workspace.active.session
    logits = session.look(lambda state: logits_at(session.engine.stepper.runner, state, 2)).result()
    session.look(lambda state: state.ring.clear()).result()  # as for a step whose row is no longer kept
    order = torch.sort(logits.double(), descending=True, stable=True).indices.tolist()
    assert page.steps[2]["planes"]["cand_ids"].size < len(order) == 259
    for token_id in (order[0], order[150], order[258]):
        (asked,) = page.ok("ask", step=2, text=f"#{token_id}")["readings"]
        assert (asked["token_id"], asked["rank"]) == (token_id, order.index(token_id) + 1)
        assert asked["logit"] == pytest.approx(float(logits[token_id]), abs=1e-5)
        assert asked["removed_by"] == (None if asked["stages"][-1]["prob"] else "top-k 3")
    assert asked["removed_by"] == "top-k 3"
    assert "ids go from 0 to 258" in page.ask("ask", step=2, text="#259")["error"]["message"]


def test_a_long_prompt_sends_thumbs_and_a_layer_on_demand(page):
    prefilled(page, "x" * 300)
    planes = page.steps[0]["planes"]
    assert "attention" not in planes
    assert planes["attention_thumb"].shape == (2, 4, 64)
    assert page.ok("attention_layer", step=0, layer=0)["weights"].shape == (4, 300)


def test_a_hostile_prompt_arrives_letter_by_letter(page):
    hostile = 'a<b & "c" </script><img src=x onerror=alert(1)> $5 _a_ \x00\x1b'
    prefilled(page, hostile)
    assert page.header["session"]["prompt"] == hostile
    assert "".join(t["text"] for t in page.header["tokens"][:-1]) == hostile


def test_a_chat_turn_marks_the_template(page):
    page.ok("prefill", prompt="Hi <|im_end|>", mode="chat")
    roles = [t["role"] for t in page.header["tokens"]]
    assert roles[0] == "template" and roles[-1] == "generated" and roles.count("prompt") == len("Hi <|im_end|>")
    assert page.header["session"]["recipe"]["mode"] == "chat"


def test_the_penalty_on_the_templates_own_end_of_turn_is_told(page):
    page.ok("prefill", prompt="Hi", mode="chat")
    (end_id,) = page.header["model"]["end_ids"]
    assert page.steps[0]["penalised_ends"] == []
    page.ok("settings", sampling={"repetition_penalty": 1.3})
    page.ok("prefill", prompt="Hi", mode="chat")
    page.ok("settings", stop={"max_new_tokens": 50})  # the rules are checked again, the record keeps what it knows
    (told,) = page.steps[0]["penalised_ends"]
    planes = page.steps[0]["planes"]
    logit = planes["cand_logits"][planes["cand_ids"].tolist().index(end_id)].item()
    assert (told["token_id"], told["in_prompt"], told["logit"]) == (end_id, True, pytest.approx(logit))
    assert told["penalised"] == pytest.approx(logit * 1.3 if logit < 0 else logit / 1.3)


# --- models --------------------------------------------------------------------------------------------------


def test_another_model_takes_over_the_prompt_and_the_old_one_is_closed(own_server, tiny_folder, other_folder):
    page = prefilled(Page(own_server), "abc")
    page.ok("settings", seed=5)
    sid, logits = page.header["session"]["sid"], page.steps[0]["planes"]["cand_logits"]
    page.ok("model", id=str(other_folder))
    assert page.header["session"]["prompt"] == "abc" and page.header["session"]["seed"] == 5
    assert page.header["session"]["sid"] == sid
    assert page.steps[0]["planes"]["cand_logits"].tolist() != logits.tolist()
    page.ok("step")
    assert own_server.pool.close_unused() == []  # the default stays for the next visitor
    page.ok("model", id=str(tiny_folder))
    assert own_server.pool.close_unused() == [str(other_folder)]


def test_a_model_that_cannot_be_loaded_can_be_asked_for_again(own_server, tmp_path):
    page = prefilled(Page(own_server))
    missing = str(tmp_path / "gone")
    for _ in range(2):
        assert page.ask("model", id=missing)["error"]["kind"] == ModelNotFound.__name__
    page.ok("step")


def test_operations_that_wait_for_nothing_are_operations_all_the_same(page):
    prefilled(page)
    running = run_steps.switch(page.tab.workspace, {"branch": 1})
    with pytest.raises(StopIteration):
        next(running)


def test_a_prompt_is_tokenised_beside_the_event_loop_and_not_on_it(page, monkeypatch):
    threads: list[str] = []
    encode = run_steps.bridge.encode
    monkeypatch.setattr(
        run_steps.bridge, "encode", lambda *given: threads.append(threading.current_thread().name) or encode(*given)
    )
    prefilled(page)
    assert [name.rpartition("_")[0] for name in threads] == ["loupe-encode"]


def test_a_stop_while_a_prompt_is_tokenised_ends_the_prefill_and_leaves_the_run(page, monkeypatch):
    prefilled(page)
    before, begun, free = page.header["session"]["recipe"], threading.Event(), threading.Event()
    encode = run_steps.bridge.encode

    def slow(*given: object):
        begun.set()
        free.wait(30)
        return encode(*given)

    monkeypatch.setattr(run_steps.bridge, "encode", slow)
    prefill = page.queue("prefill", prompt="another", mode="raw")
    begun.wait(30)
    stop = page.queue("stop", run=False)
    page.say()
    free.set()
    page.finish()
    assert page.answers[prefill]["error"]["kind"] == "SessionError"
    assert page.answers[stop]["value"] == {"cancelled": True}
    assert page.header["session"]["recipe"] == before


def test_the_blocks_of_a_step_come_with_all_layers_and_move_nothing(page):
    prefilled(page)
    page.ok("step")
    before = page.epoch
    found = page.ok("blocks", step=1)
    assert (found["step"], found["hidden"], found["vocabulary"], found["closed"]) == (1, 32, 259, "")
    assert len(found["layers"]) == 2 and page.epoch == before
    first, second = found["layers"]
    assert first["left"] == second["entered"]
    assert first["heads"] == [4, 2, 16, 16]
    assert [matrix[:3] for matrix in first["matrices"]] == [
        ["gate_proj", 32, 48],
        ["up_proj", 32, 48],
        ["down_proj", 48, 32],
    ]
    assert first["mlp_norm"] is None and 0 < first["mlp_added"] < 1e3
    assert found["norm_name"] == "RMSNorm" and found["experts"] is None
