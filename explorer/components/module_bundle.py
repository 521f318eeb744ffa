"""Puts the ES modules of a folder into one inline module: Streamlit takes a single piece of JavaScript.

In one module all top-level names are shared, so two files must never declare the same one; a clash is an
error here instead of a page that silently runs the wrong function. Files come in the order their imports ask for.
A file's name is its path inside the folder, and an import is read relative to the file it stands in, as browsers do.
"""

from __future__ import annotations

import posixpath
import re
from collections.abc import Mapping
from graphlib import CycleError, TopologicalSorter
from pathlib import Path

_IMPORT = re.compile(r"^import\s[^;]*?from\s+['\"](\.{1,2}/[\w./-]+)['\"];?[ \t]*\n", re.MULTILINE)
_ANY_IMPORT = re.compile(r"^import\b.*", re.MULTILINE)
_EXPORT = re.compile(r"^export\s+(?!default\b)(?=(async\s+)?(function|class|const|let|var)\b)", re.MULTILINE)
_EXPORT_DEFAULT = re.compile(r"^export\s+default\s+(?=(async\s+)?(function|class)\b)", re.MULTILINE)
_ANY_EXPORT = re.compile(r"^export\s.*", re.MULTILINE)
_DECLARED = re.compile(
    r"^(?:export\s+(?:default\s+)?)?(?:async\s+)?(?:function\*?|class|const|let|var)\s+([A-Za-z_$][\w$]*)", re.MULTILINE
)
_DESTRUCTURED = re.compile(r"^(?:export\s+)?(?:const|let|var)\s+[{\[]([^}\]]*)[}\]]", re.MULTILINE)


class BundleError(Exception):
    """The files do not make one module."""


def bundle_js(sources: Mapping[str, str], entry: str) -> str:
    """One module out of files by name; `entry` keeps its default export and comes last."""
    _refuse_clashes(sources)
    order = [name for name in _sorted(sources) if name != entry] + [entry]
    parts = [f"// --- {name} ---\n{_plain(name, sources[name], keeps_default=name == entry)}" for name in order]
    return "\n".join(parts)


def bundle_css(sources: Mapping[str, str]) -> str:
    """All style sheets, by name: what is needed everywhere is named to come first."""
    return "\n".join(f"/* --- {name} --- */\n{sources[name]}" for name in sorted(sources))


def read_sources(folder: Path, suffix: str) -> dict[str, str]:
    """The files of a folder and of the folders in it, by their path inside the folder."""
    paths = sorted(folder.rglob(f"*{suffix}"))
    return {path.relative_to(folder).as_posix(): path.read_text(encoding="utf-8") for path in paths}


def needed_for(entry: str, sources: Mapping[str, str]) -> dict[str, str]:
    """Of `sources`, the entry and whatever it imports, directly or through others."""
    needed, waiting = dict[str, str](), [entry]
    while waiting:
        name = waiting.pop()
        if name not in needed:
            needed[name] = sources[name]
            waiting += _imported(name, sources)
    return needed


def declared_names(source: str) -> list[str]:
    """Top-level names of a module: declarations at the beginning of a line, as our files are formatted."""
    names = _DECLARED.findall(source)
    for inside in _DESTRUCTURED.findall(source):
        names += [part.split(":")[-1].split("=")[0].strip() for part in inside.split(",") if part.strip()]
    return names


def _sorted(sources: Mapping[str, str]) -> list[str]:
    graph: TopologicalSorter[str] = TopologicalSorter()
    for name in sorted(sources):
        graph.add(name, *_imported(name, sources))
    try:
        return list(graph.static_order())
    except CycleError as error:
        raise BundleError(f"These files import each other in a circle: {' → '.join(error.args[1])}.") from error


def _imported(name: str, sources: Mapping[str, str]) -> list[str]:
    found = [
        posixpath.normpath(posixpath.join(posixpath.dirname(name), path)) for path in _IMPORT.findall(sources[name])
    ]
    missing = [other for other in found if other not in sources]
    if missing:
        raise BundleError(f"{name} imports {missing[0]}, which is not there.")
    return found


def _refuse_clashes(sources: Mapping[str, str]) -> None:
    owner: dict[str, str] = {}
    for file, source in sources.items():
        for name in declared_names(source):
            if owner.setdefault(name, file) != file:
                raise BundleError(f"{file} and {owner[name]} both declare {name}; rename one.")


def _plain(name: str, source: str, *, keeps_default: bool) -> str:
    without = _EXPORT.sub("", _IMPORT.sub("", source))
    if not keeps_default:
        without = _EXPORT_DEFAULT.sub("", without)
    left = _ANY_IMPORT.search(without)
    if left:
        raise BundleError(f"{name}: only imports of files in this folder can be bundled, found: {left.group()}")
    exports = [
        line for line in _ANY_EXPORT.findall(without) if not line.startswith("export default ") or not keeps_default
    ]
    if exports:
        raise BundleError(f"{name}: cannot bundle: {exports[0]}")
    if keeps_default and "export default " not in without:
        raise BundleError(f"{name} has no default export.")
    return without
