"""Small files that spare the next start some work. Each is named by a mark of everything that it depends on."""

from __future__ import annotations

import hashlib
import json
import logging
import tempfile
from collections.abc import Sequence
from pathlib import Path

log = logging.getLogger(__name__)

MOST_FILES = 32  # of a kind; the oldest go first


def recall(folder: Path, key: Sequence[object]) -> str:
    """What was kept under this key; empty where there is nothing that can be read."""
    try:
        return _path(folder, key).read_text(encoding="utf-8")
    except (OSError, ValueError):
        return ""


def keep(folder: Path, key: Sequence[object], text: str) -> None:
    """Keep `text`, whole or not at all. A folder that cannot be written costs the next start its gain, no more."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
        with tempfile.NamedTemporaryFile("w", dir=folder, delete=False, encoding="utf-8") as whole:
            whole.write(text)
        Path(whole.name).replace(_path(folder, key))
        for old in sorted(folder.iterdir(), key=lambda path: path.stat().st_mtime_ns)[:-MOST_FILES]:
            old.unlink(missing_ok=True)
    except OSError as error:
        log.info("%s could not be written: %s", folder, error)


def _path(folder: Path, key: Sequence[object]) -> Path:
    return folder / f"{hashlib.sha256(json.dumps(key).encode()).hexdigest()[:24]}.json"
