"""Who may import whom: the two laws that keep the engine free of the page and the page free of the model."""

from __future__ import annotations

import ast
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]
LEVELS = {
    **dict.fromkeys(("errors", "config", "records", "key_records", "tokens", "facts"), 0),
    **dict.fromkeys(("costs", "shapes", "hardware", "registry", "scheduler", "meter"), 1),
    **dict.fromkeys(("session", "llm_engine", "self_check", "key_change", "prepare", "__main__", "recording"), 4),
    **dict.fromkeys(("model_runner", "session_state", "session_table", "stepping", "prefilling", "looking"), 3),
    **dict.fromkeys(("requests", "serving", "session_requests"), 3),
    **dict.fromkeys(("uncached", "phases", "chunk_sizes", "layer_times"), 3),
    **dict.fromkeys(("tiles", "claim_records"), 1),
    **dict.fromkeys(("head_reader", "claim_checks", "studies"), 4),
    **dict.fromkeys(("shapes.hub", "shapes.loaded"), 2),
    "models.proof": 3,
}  # every other file of engine/ is a part, level 2; a file in a package has its package's level unless named


def imports(path: Path) -> set[str]:
    """Modules that a file imports anywhere, those under TYPE_CHECKING excepted: they are words, not ties."""
    found: set[str] = set()
    for node in ast.walk(_without_type_checking(ast.parse(path.read_text()))):
        if isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and node.module:
            found |= {node.module, *(f"{node.module}.{alias.name}" for alias in node.names)}
    return found


def _without_type_checking(tree: ast.Module) -> ast.Module:
    tree.body = [n for n in tree.body if not (isinstance(n, ast.If) and "TYPE_CHECKING" in ast.dump(n.test))]
    return tree


def level(module: str) -> int:
    """Level of a file of engine/, written with dots: "costs", "costs.flops"."""
    package = module.partition(".")[0]
    return LEVELS.get(module, LEVELS.get(package, 2))


def named(path: Path) -> str:
    """A file of engine/ as Python imports it, without the leading "engine."; a package is its own name."""
    parts = path.relative_to(ROOT / "engine").with_suffix("").parts
    return ".".join(part for part in parts if part != "__init__") or "__init__"


ENGINE = sorted((ROOT / "engine").rglob("*.py"))
EXPLORER = sorted([*(ROOT / "explorer").rglob("*.py"), ROOT / "app.py"])


def test_there_are_files_to_check():
    assert len(ENGINE) > 20
    assert len(EXPLORER) > 5


@pytest.mark.parametrize("path", ENGINE, ids=named)
def test_the_engine_never_sees_the_ui(path):
    roots = {name.split(".")[0] for name in imports(path)}
    assert not roots & {"streamlit", "plotly", "explorer"}


@pytest.mark.parametrize("path", EXPLORER, ids=lambda p: str(p.relative_to(ROOT)))
def test_a_view_never_sees_the_model(path):
    roots = {name.split(".")[0] for name in imports(path)}
    assert not roots & {"torch", "transformers", "accelerate", "safetensors", "gguf"}


@pytest.mark.parametrize("path", ENGINE, ids=named)
def test_an_engine_file_imports_only_from_its_own_level_or_below(path):
    used = {name.removeprefix("engine.") for name in imports(path) if name.startswith("engine.")}
    above = {name for name in used & {named(p) for p in ENGINE} if level(name) > level(named(path))}
    assert not above


@pytest.mark.parametrize("path", [p for p in ENGINE if level(named(p)) <= 1], ids=named)
def test_words_and_arithmetic_load_without_torch(path):
    code = f"import sys, engine.{named(path)}; sys.exit('torch' in sys.modules or 'transformers' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], cwd=ROOT, check=False).returncode == 0


@pytest.mark.parametrize("path", [*ENGINE, *EXPLORER], ids=lambda p: str(p.relative_to(ROOT)))
def test_every_file_says_what_it_is(path):
    assert ast.get_docstring(ast.parse(path.read_text()))


@pytest.mark.parametrize("path", EXPLORER, ids=lambda p: str(p.relative_to(ROOT)))
def test_a_view_asks_the_engine_and_never_reaches_for_its_parts(path):
    reached = {node.attr for node in ast.walk(ast.parse(path.read_text())) if isinstance(node, ast.Attribute)}
    assert not reached & {"stepper", "runner"}
