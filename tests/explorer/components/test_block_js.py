"""A layer box by box: the order of the field, shapes from the model's own sizes, and what an addition is a share of."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
from playwright.sync_api import Browser, Page

from explorer.glossary.glossary import terms
from tests.explorer.components.js_page import js_page

pytestmark = pytest.mark.browser

LAYER: dict[str, Any] = {
    "entered": 10.0,
    "first_norm": 2.0,
    "query": 3.0,
    "key": 4.0,
    "value": 5.0,
    "attended": 6.0,
    "projected": 7.0,
    "attention_norm": None,
    "attention_added": 7.0,
    "middle": 12.0,
    "second_norm": 8.0,
    "inner": 9.0,
    "mlp": 3.0,
    "mlp_norm": None,
    "mlp_added": 3.0,
    "left": 13.0,
    "heads": [4, 2, 16, 16],
    "keys_read": 21,
    "is_rotated": True,
    "has_experts": False,
    "matrices": [["gate_proj", 64, 96, 1.5], ["up_proj", 64, 96, 2.5], ["down_proj", 96, 64, None]],
}
BLOCKS = {"hidden": 64, "vocabulary": 300, "norm_name": "RMSNorm", "final_norm": 20.0, "logits": 30.0}


@pytest.fixture(scope="module")
def page(browser: Browser) -> Iterator[Page]:
    opened = js_page(
        browser,
        {
            "boxes.js": "blockBoxes, blockTable, endBoxes",
            "residual_chart.js": "layerAt, logHeight",
            "strip_lines.js": "stepThatAsked",
        },
    )
    yield opened
    opened.close()


def boxes(page: Page, *, closed: str = "", experts: Any = None, **changes: Any) -> dict[str, Any]:
    answer = {**BLOCKS, "layers": [LAYER | changes], "closed": closed, "experts": experts}
    made: dict[str, Any] = page.evaluate("([blocks, keys]) => blockBoxes(blocks, 0, keys)", [answer, 21])
    return made


def named(row: list[dict[str, Any]]) -> list[str]:
    return [box["name"] for box in row]


def test_a_llama_layer_stands_in_the_order_of_the_field(page: Page):
    made = boxes(page)
    attention, mlp = made["attention"], made["mlp"]
    assert named(attention) == [
        "residual in", "RMSNorm", "q k v", "RoPE", "attention", "output projection", "+ residual"
    ]  # fmt: skip
    assert named(mlp) == ["RMSNorm", "MLP: gate, up", "activation", "MLP: down", "+ residual"]
    assert attention[2]["shape"] == "q 4 × 16, k 2 × 16, v 2 × 16 · 2 query heads share one k and v"
    assert attention[2]["norms"] == [["v", 5]] and attention[3]["norms"] == [["q", 3], ["k", 4]]
    assert attention[3]["shape"] == "q and k rotated by angles for position 20"
    assert attention[4]["shape"] == "4 heads read 21 keys"
    assert (mlp[1]["shape"], mlp[1]["norms"]) == ("64 → 96 each", [["gate", 1.5], ["up", 2.5]])
    assert (mlp[3]["shape"], mlp[3]["norms"]) == ("96 → 64", [["", 3]])


def test_a_share_is_that_of_the_residual_which_was_added_to(page: Page):
    made = boxes(page)
    assert made["attention"][-1]["sum"] == {"added": 7, "of": 10, "both": None}
    assert made["mlp"][-1]["sum"] == {"added": 3, "of": 12, "both": None}


def test_branches_that_read_the_same_are_added_at_once(page: Page):
    made = boxes(page, middle=None)
    assert made["isParallel"]
    assert named(made["attention"])[-1] == "output projection"
    assert named(made["mlp"])[0] == "residual in"
    assert made["mlp"][-1]["sum"] == {"added": 3, "of": 10, "both": 7}


def test_learned_positions_windows_experts_and_norms_after_a_branch_are_said(page: Page):
    made = boxes(
        page, is_rotated=False, keys_read=8, attention_norm=1.0, has_experts=True, experts={"count": 8, "active": 2}
    )
    assert named(made["attention"])[2:] == ["q k v", "attention", "output projection", "RMSNorm", "+ residual"]
    assert made["attention"][2]["norms"] == [["q", 3], ["k", 4], ["v", 5]]
    assert made["attention"][3]["shape"] == "4 heads read 8 of 21 keys"
    assert named(made["mlp"]) == ["RMSNorm", "MLP", "+ residual"]
    assert made["mlp"][1]["shape"] == "8 experts, 2 used for each token"


def test_a_layer_without_rope_among_others_with_it_has_no_such_box_and_says_so(page: Page):
    answer = {**BLOCKS, "layers": [LAYER, LAYER | {"is_rotated": False}], "closed": "", "experts": None}
    made = page.evaluate("(blocks) => blockBoxes(blocks, 1, 21)", answer)["attention"]
    assert named(made)[2:4] == ["q k v", "attention"]
    assert made[2]["shape"].endswith(" · no RoPE in this layer")
    assert page.evaluate("(blocks) => endBoxes(blocks)", answer)["before"][0]["shape"] == "one row of 300 × 64"


def test_the_first_position_of_all_is_rotated_by_nothing(page: Page):
    answer = {**BLOCKS, "layers": [LAYER], "closed": "", "experts": None}
    made = page.evaluate("(blocks) => blockBoxes(blocks, 0, 1)", answer)["attention"]
    assert made[3]["shape"] == "position 0: RoPE leaves q and k as they are"


def test_a_block_that_cannot_be_told_apart_shows_what_is_known(page: Page):
    nothing = dict.fromkeys(
        ("first_norm", "projected", "attention_added", "middle", "second_norm", "inner", "mlp", "mlp_added")
    )
    made = boxes(page, closed="said", matrices=[], **nothing)
    assert named(made["attention"]) == ["residual in", "q k v", "RoPE", "attention"]
    assert named(made["mlp"]) == ["residual out"]


def test_every_box_is_a_term_of_the_glossary(page: Page):
    made = boxes(page)
    ends = page.evaluate("(blocks) => endBoxes(blocks)", {**BLOCKS, "layers": [LAYER], "closed": "", "experts": None})
    assert named(ends["before"] + ends["after"]) == ["embedding", "final RMSNorm", "LM head"]
    assert ends["after"][1]["shape"] == "64 → 300"
    used = {box["term"] for row in (*made.values(), *ends.values()) if isinstance(row, list) for box in row}
    assert used <= {term.name for term in terms()}


def test_the_strip_finds_the_layer_under_the_pointer(page: Page):
    assert page.evaluate("[4, 13, 14, 103, 104, 3].map((x) => layerAt(x, 108, 10))") == [0, 0, 1, 9, None, None]
    assert page.evaluate("[1, 10, 100].map((norm) => logHeight(norm, 1, 100))") == pytest.approx([0, 0.5, 1])


def test_a_token_asked_in_the_step_that_fed_it(page: Page):
    """Of a prompt of four, the last asked in step 0; the token of step 2 is fed by step 3, not there yet."""
    asked = page.evaluate("[2, 3, 4, 5, 6].map((position) => stepThatAsked(position, 4, 2))")
    assert asked == [None, 0, 1, 2, None]
