"""Who may import whom: the engine never sees the page, the page never sees the model, and nothing goes in circles."""

from __future__ import annotations

import ast
import subprocess
import sys
from functools import cache
from graphlib import TopologicalSorter
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]

# The packages of engine/ in order: a file imports from its own package and from lines above it. A file that lies right
# in engine/ belongs to the first line, unless it is named on another. So a new file needs no entry here.
ORDER: tuple[tuple[str, ...], ...] = (
    ("words",),  # config, errors, records, tokens, tiles: every file of engine/ that is not named below
    ("costs",),
    ("shapes", "facts"),
    ("text", "kernels"),
    ("measure",),
    ("forward",),
    ("models", "decode"),
    ("serving",),
    ("session",),
    ("llm_engine",),
    ("studies",),
    ("prepare", "starting"),
    ("__main__",),
)
LEVEL = {package: level for level, packages in enumerate(ORDER) for package in packages}
WITHOUT_TORCH = LEVEL["shapes"]  # packages up to this one load without torch


def module_of(path: Path) -> str:
    """A file as Python imports it; a package is its own name."""
    parts = path.relative_to(ROOT).with_suffix("").parts
    return ".".join(part for part in parts if part != "__init__")


FILES = {
    module_of(path): path
    for folder in ("engine", "explorer", "loupe")
    for path in sorted((ROOT / folder).rglob("*.py"))
}
FILES |= {module_of(path): path for path in sorted(ROOT.glob("*.py"))}
ENGINE = [name for name in FILES if name.partition(".")[0] == "engine"]
EXPLORER = [name for name in FILES if name.partition(".")[0] != "engine"]


@cache
def imports(module: str) -> frozenset[str]:
    """What a file imports anywhere, also inside functions and under TYPE_CHECKING, by its full name."""
    found: set[str] = set()
    for node in ast.walk(ast.parse(FILES[module].read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and node.module:
            names = {f"{node.module}.{alias.name}" for alias in node.names}
            found |= {name if name in FILES else node.module for name in names}
    return frozenset(found)


def package(module: str) -> str:
    """The package of engine/ that a module belongs to."""
    name = module.split(".")[1] if "." in module else "words"
    return name if name in LEVEL else "words"


def may_import(module: str, other: str) -> bool:
    """Whether the order of packages allows `module` of engine/ to import `other` of engine/."""
    mine, theirs = package(module), package(other)
    return mine == theirs or LEVEL[theirs] < LEVEL[mine]


def test_there_are_files_to_check():
    assert len(ENGINE) > 60
    assert len(EXPLORER) > 60


def test_every_package_of_the_engine_has_its_place_in_the_order():
    folders = {path.name for path in (ROOT / "engine").iterdir() if (path / "__init__.py").exists()}
    assert folders <= set(LEVEL)
    assert set(LEVEL) - folders - {"words"} <= {path.stem for path in (ROOT / "engine").glob("*.py")}


COMMAND = (
    "engine.__main__"  # a caller of the engine, as app.py is: it may hand a finished run to what writes recordings
)
WRITERS = "explorer.recordings."


@pytest.mark.parametrize("module", ENGINE)
def test_the_engine_never_sees_the_ui(module):
    seen = {name for name in imports(module) if not (module == COMMAND and name.startswith(WRITERS))}
    assert not {name.split(".")[0] for name in seen} & {"streamlit", "plotly", "explorer"}


@pytest.mark.parametrize("module", EXPLORER)
def test_a_view_never_sees_the_model(module):
    roots = {name.split(".")[0] for name in imports(module)}
    assert not roots & {"torch", "transformers", "accelerate", "safetensors", "gguf"}


@pytest.mark.parametrize("module", ENGINE)
def test_a_file_of_the_engine_imports_from_its_own_package_or_from_one_before_it(module):
    ours = {name for name in imports(module) if name in FILES and name != "engine"}
    assert not {name for name in ours if not may_import(module, name)}


WITHOUT_STREAMLIT = ("loupe", "loupe.run", "loupe.recording", COMMAND)


def test_the_notebook_package_and_the_command_load_without_streamlit():
    code = (
        "import sys\nsys.modules['streamlit'] = None\nfrom importlib import import_module\n"
        f"for name in {[*WITHOUT_STREAMLIT, 'explorer.recordings.single_page']!r}: import_module(name)\n"
    )
    subprocess.run([sys.executable, "-c", code], cwd=ROOT, check=True)


def test_no_files_import_each_other_in_a_circle():
    graph = {module: {name for name in imports(module) if name in FILES} - {module} for module in FILES}
    TopologicalSorter(graph).prepare()  # raises CycleError, which names the circle


def test_words_costs_and_shapes_load_without_torch():
    assert first_that_loads_torch([m for m in ENGINE if LEVEL[package(m)] <= WITHOUT_TORCH]) == ""


def test_every_page_loads_without_torch():
    assert first_that_loads_torch([module for module in EXPLORER if module.startswith("explorer")]) == ""


def first_that_loads_torch(modules: list[str]) -> str:
    """Imports them one by one in a fresh Python; the name of the first that brings torch or transformers along."""
    code = (
        "import sys\nfrom importlib import import_module\n"
        f"for name in {modules!r}:\n    import_module(name)\n"
        "    if {'torch', 'transformers'} & set(sys.modules): sys.exit(print(name))\n"
    )
    done = subprocess.run([sys.executable, "-c", code], cwd=ROOT, check=True, capture_output=True, text=True)
    return done.stdout.strip()


@pytest.mark.parametrize("module", list(FILES))
def test_every_file_says_what_it_is(module):
    assert ast.get_docstring(ast.parse(FILES[module].read_text(encoding="utf-8")))


@pytest.mark.parametrize("module", EXPLORER)
def test_a_view_asks_the_engine_and_never_reaches_for_its_parts(module):
    tree = ast.parse(FILES[module].read_text(encoding="utf-8"))
    reached = {node.attr for node in ast.walk(tree) if isinstance(node, ast.Attribute)}
    assert not reached & {"stepper", "runner"}
