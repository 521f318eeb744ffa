"""The sentences of the Step page, which its scripts say by name: one file to read them all, and to translate them."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable
from pathlib import Path

from explorer.say import read_words

FILE = Path(__file__).resolve().parents[2] / "assets" / "step_page" / "words.toml"
_SAID = re.compile(r"\bsay\(\s*'(\w+\.\w+)'")


def words_script(sources: Iterable[str]) -> str:
    """What stands in front of scripts that say sentences: those of them that `sources` say."""
    every, said = read_words(FILE), {name for source in sources for name in _SAID.findall(source)}
    return f"const WORDS = {json.dumps({name: every[name] for name in sorted(said)})};\n"
