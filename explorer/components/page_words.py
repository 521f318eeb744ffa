"""The sentences of the Step page, which its scripts say by name: one file to read them all, and to translate them."""

from __future__ import annotations

import json
import re
import tomllib
from collections.abc import Iterable
from pathlib import Path

FILE = Path(__file__).resolve().parents[2] / "assets" / "step_page" / "words.toml"
_SAID = re.compile(r"\bsay\(\s*'(\w+)\.(\w+)'")


def page_words() -> dict[str, dict[str, str]]:
    """Every sentence, by section and name."""
    return tomllib.loads(FILE.read_text(encoding="utf-8"))


def words_script(sources: Iterable[str]) -> str:
    """What stands in front of scripts that say sentences: those of them that `sources` say."""
    every, said = page_words(), {found for source in sources for found in _SAID.findall(source)}
    words: dict[str, dict[str, str]] = {}
    for section, name in sorted(said):
        words.setdefault(section, {})[name] = every[section][name]
    return f"const WORDS = {json.dumps(words)};\n"
