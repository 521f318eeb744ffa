"""The bundler: one module out of many, in the order of their imports, and no silent clash."""

from __future__ import annotations

import shutil
import subprocess

import pytest

from explorer.components.module_bundle import (
    BundleError,
    bundle_css,
    bundle_js,
    declared_names,
    needed_for,
    read_sources,
)
from explorer.components.step_page import ASSETS, ENTRY, page_script

LEAF = "/** leaf */\nexport const WIDTH = 3;\nconst { a, b: c } = { a: 1, b: 2 };\nexport async function load() {}\n"
MIDDLE = "import {\n  WIDTH,\n} from './leaf.js';\nexport class Box {}\nexport function area() { return WIDTH; }\n"
PAGE = """\
import { area } from './middle.js';
import { WIDTH } from './leaf.js';
export default function page() { return area() + WIDTH; }
"""


def test_files_come_after_what_they_import_and_the_entry_last():
    joined = bundle_js(
        {"step.js": PAGE, "middle.js": MIDDLE, "leaf.js": LEAF, "zzz.js": "export const LATE = 1;\n"}, "step.js"
    )
    places = [joined.index(f"// --- {name} ---") for name in ("leaf.js", "middle.js", "step.js")]
    assert places == sorted(places)
    assert joined.index("zzz.js") < joined.index("step.js")


def test_an_entry_that_imports_nothing_still_comes_last():
    joined = bundle_js({"step.js": "export default 1;\n", "zzz.js": "export const LATE = 1;\n"}, "step.js")
    assert joined.index("zzz.js") < joined.index("step.js")


def test_an_import_is_read_relative_to_the_file_it_stands_in():
    joined = bundle_js(
        {
            "page/step.js": "import { draw } from './panels/one.js';\nexport default draw;\n",
            "page/panels/one.js": "import { WIDTH } from '../../leaf.js';\nexport const draw = WIDTH;\n",
            "leaf.js": LEAF,
        },
        "page/step.js",
    )
    places = [joined.index(f"// --- {name} ---") for name in ("leaf.js", "page/panels/one.js", "page/step.js")]
    assert places == sorted(places)
    assert "import" not in joined


def test_a_file_that_the_entry_never_reaches_is_left_out():
    files = {"step.js": PAGE, "middle.js": MIDDLE, "leaf.js": LEAF, "zzz.js": "export const LATE = 1;\n"}
    assert set(needed_for("step.js", files)) == {"step.js", "middle.js", "leaf.js"}


def test_every_script_of_the_step_page_is_reached():
    scripts = read_sources(ASSETS, ".js")
    own = {name for name in scripts if name.startswith("step_page/")}
    assert own == set(needed_for(ENTRY, scripts))


def test_imports_go_and_only_the_default_export_stays():
    joined = bundle_js({"step.js": PAGE, "middle.js": MIDDLE, "leaf.js": LEAF}, "step.js")
    assert "import" not in joined
    assert [line for line in joined.splitlines() if line.startswith("export")] == [
        "export default function page() { return area() + WIDTH; }"
    ]
    assert "\nasync function load() {}" in joined
    assert "\nclass Box {}" in joined


def test_a_name_declared_in_two_files_is_refused():
    with pytest.raises(BundleError, match="both declare WIDTH"):
        bundle_js(
            {"step.js": "export default 1;\n", "a.js": "const WIDTH = 1;\n", "b.js": "export let WIDTH = 2;\n"},
            "step.js",
        )


def test_a_name_inside_a_function_is_nobodys_business():
    inner = "export function f() {\n  const WIDTH = 1;\n  return WIDTH;\n}\n"
    assert bundle_js({"step.js": "export default 1;\n", "a.js": inner, "b.js": "const WIDTH = 2;\n"}, "step.js")


def test_destructured_names_count():
    assert declared_names(LEAF) == ["WIDTH", "load", "a", "c"]


def test_a_circle_is_refused():
    circle = {
        "step.js": "export default 1;\n",
        "a.js": "import { b } from './b.js';\n",
        "b.js": "import { a } from './a.js';\n",
    }
    with pytest.raises(BundleError, match="circle"):
        bundle_js(circle, "step.js")


def test_a_missing_file_is_named():
    with pytest.raises(BundleError, match=r"step\.js imports gone\.js"):
        bundle_js({"step.js": "import { x } from './gone.js';\nexport default x;\n"}, "step.js")


@pytest.mark.parametrize(
    "source",
    ["import x from 'react';\n", "export { x };\n", "export default 5;\n", "import './side.js';\n"],
)
def test_what_cannot_be_bundled_is_refused(source):
    with pytest.raises(BundleError, match=r"a\.js"):
        bundle_js({"step.js": "export default 1;\n", "a.js": source}, "step.js")


def test_an_entry_without_a_default_export_is_refused():
    with pytest.raises(BundleError, match="no default export"):
        bundle_js({"step.js": "export const x = 1;\n"}, "step.js")


def test_styles_are_joined_by_name():
    assert bundle_css({"b.css": ".b{}", "a.css": ".a{}"}).index(".a{}") < bundle_css(
        {"b.css": ".b{}", "a.css": ".a{}"}
    ).index(".b{}")


def test_our_own_files_make_a_module_that_parses(tmp_path):
    module = tmp_path / "page.mjs"
    module.write_text(page_script(), encoding="utf-8")
    node = shutil.which("node")
    if node is None:
        pytest.skip("node is not installed: the browser tests load the module")
    checked = subprocess.run([node, "--check", str(module)], capture_output=True, text=True, check=False)
    assert checked.returncode == 0, checked.stderr
