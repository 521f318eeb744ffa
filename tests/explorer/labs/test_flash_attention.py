"""The tiles lab: what reaches its picture, its bytes by hand, and the page on a live session of a tiny model."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from streamlit.testing.v1 import AppTest

from engine.tiles import HeadInputs, exact
from explorer.components import tile_walk
from explorer.labs.flash_attention import answer, walking
from explorer.labs.flash_attention.figures import matrix_figure
from explorer.labs.flash_attention.traffic import Setting, rows, sweep, traffic
from explorer.live.frame import read_plane, unpack
from tests.explorer.labs.answers import answer_of, unfold

APP = str(Path(__file__).resolve().parents[3] / "app.py")
HALF = Setting(head_dim=128, dtype_bytes=2, query_rows=128, tile_keys=64)


def head(num_keys: int = 9) -> HeadInputs:
    random = np.random.default_rng(3)
    query, keys, values = (random.normal(size=s).astype(np.float32) for s in ((4,), (num_keys, 4), (num_keys, 6)))
    return HeadInputs(query, keys, values, 0.5, None, None, np.ones(num_keys, np.bool_))


def test_the_frame_holds_every_tile_and_the_exact_output():
    inputs = head()
    done = walking.walked(inputs, 4)
    header, planes = unpack(walking.frame_of(done, [{"text": str(i)} for i in range(9)], key="a", tile=2))
    assert (header["tiles"], header["size"], header["keys"], header["tile"], header["begin"]) == (3, 4, 9, 2, None)
    read = {name: read_plane(planes, header[name]) for name in ("scores", "m", "l", "rescale", "out", "exact")}
    assert read["scores"] == pytest.approx(inputs.scores())
    assert read["m"].tolist() == np.maximum.accumulate([s.max() for s in np.split(inputs.scores(), [4, 8])]).tolist()
    assert read["out"].shape == (3, 6)
    assert read["out"][-1] == pytest.approx(read["exact"], abs=1e-6)
    assert read["exact"] == pytest.approx(exact(inputs))
    assert header["off"][-1] < 1e-6 < header["off"][0]


def test_the_table_names_the_keys_of_each_tile_and_counts_the_rescales():
    done = walking.walked(head(), 4)
    table = walking.rows(done)
    assert [row["keys"] for row in table] == ["0 to 3", "4 to 7", "8 to 8"]
    assert done.rescaled == sum(row["earlier sums times"] < 1 for row in table)


@pytest.mark.parametrize(
    ("keys", "least", "usual"), [(1, 1, 1), (3, 1, 1), (32, 1, 4), (512, 1, 64), (513, 2, 64), (65_536, 128, 128)]
)
def test_tiles_are_about_eight_never_more_than_512(keys, least, usual):
    assert (walking.smallest_tile(keys), walking.usual_tile(keys)) == (least, usual)


def test_bytes_at_4096_tokens_and_128_wide_heads_as_on_paper():
    at = traffic(4096, HALF)
    square, tensor = 4096 * 4096 * 2, 4096 * 128 * 2  # 32 MiB, 1 MiB
    assert (at.matrix, at.ideal, at.naive) == (square, 4 * tensor, 4 * square + 4 * tensor)
    assert at.no_reuse == 2 * tensor + 2 * 32 * tensor  # 32 tiles of queries read K and V
    assert at.decode_row == 8192
    assert at.tile == 128 * 64 * 4
    assert at.share == 128 / 132


def test_a_prompt_shorter_than_a_tile_holds_no_more_than_its_own_square():
    assert traffic(5, HALF).tile == 5 * 5 * 4


def test_the_figure_carries_the_rows_and_marks_the_session():
    swept, here = sweep(HALF, (16, 4096)), traffic(100, HALF)
    *curves, mark = matrix_figure(swept, HALF, here).data
    fields = ("matrix", "decode_row", "tile")
    assert [list(curve.y) for curve in curves] == [[getattr(row, f) for row in swept] for f in fields]
    assert list(mark.y) == [getattr(here, f) for f in fields]
    assert "d = 128, b = 2, tile 128 × 64" in curves[0].hovertemplate
    assert [row["N"] for row in rows(swept)] == [16, 4096]


def test_the_answer_counts_bytes_by_hand():
    assert answer.sentence(traffic(4096, Setting(64, 2, 128, 128))).plain == (
        "Over a prompt of 4,096 tokens, unfused attention moves 136 MB per head and layer. FlashAttention moves 34.6 "
        "MB, 3.94 times less, and holds one tile of scores, 65.5 kB, in place of 33.6 MB."
    )  # 4·4096²·2 + 4·4096·64·2 = 136.3 MB; 2·4096·64·(2 + 2·32) = 34.6 MB; 128·128·4 = 65,536 B; 4096²·2 = 33.6 MB


def test_the_picture_marks_the_length_asked_about_and_the_runs_own():
    swept = sweep(HALF, (16, 100, 4096))
    plot = answer.moved(swept, HALF, traffic(4096, HALF), traffic(100, HALF)).payload()
    unfused, tiled, run = plot["points"]
    lines = [line["at"] for line in plot["lines"]]
    assert (unfused["at"], tiled["at"], run["at"]) == (lines[0][2], lines[1][2], lines[1][1])
    assert run["label"] == "your run, 100 tokens"


def test_the_component_is_one_module_with_nothing_left_to_import():
    lines = tile_walk.script().splitlines()
    assert not [line for line in lines if line.startswith("import ")]
    assert [line for line in lines if line.startswith("export ")] == [
        "export default function tileWalk({ data, parentElement, setStateValue }) {"
    ]
    assert "--accent" in tile_walk.styles()


# --- as Streamlit runs it -------------------------------------------------------------------------------------


pytestmark = pytest.mark.usefixtures("app_server")


def opened(**params: str) -> AppTest:
    page = AppTest.from_string("from explorer.labs.flash_attention.page import page\npage()", default_timeout=60)
    page.query_params.update(params)
    return page.run()


def words(page: AppTest) -> str:
    return " ".join(str(element.value) for element in [*page.text, *page.caption])


def walks(page: AppTest) -> list[dict[str, object]]:
    """What the picture got; empty where there is none."""
    return [unpack(c.proto.bytes)[0] for c in page.get("bidi_component") if c.key == tile_walk.KEY]


def walk_header(page: AppTest) -> dict[str, object]:
    (found,) = walks(page)
    return found


def test_without_a_run_the_bytes_are_there_and_the_walk_says_what_it_needs():
    page = opened(n="1024", d="64")
    assert not page.exception
    assert "needs a run" in words(page)
    assert answer_of(page).startswith("Over a prompt of 1,024 tokens")
    assert not walks(page)
    assert not page.get("plotly_chart")
    assert len(unfold(page, "tiles_held").get("plotly_chart")) == 1


def test_a_run_begun_here_is_walked_and_a_link_opens_layer_head_and_tile():
    page = opened(layer="1", head="2", size="2", tile="3")
    page.button(key="prefill_here").click().run()
    assert not page.exception
    header = walk_header(page)
    keys = len("The cat sat")  # one token per byte
    assert (header["keys"], header["size"], header["tiles"], header["tile"]) == (keys, 2, 6, 3)
    assert "step 0, layer 1, head 2" in words(page)
    page.number_input(key="size").set_value(11).run()
    assert walk_header(page)["tiles"] == 1
    assert "There is no tile 3 here" in words(page)
