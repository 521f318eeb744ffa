"""The sentences of the Step page, which its scripts say by name: one file to read them all, and to translate them."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable
from pathlib import Path

from explorer.say import language_of, read_words

FILE = Path(__file__).resolve().parents[2] / "assets" / "step_page" / "words.toml"
_SAID = re.compile(r"\bsay(?:Nodes)?\(\s*'(\w+\.\w+)'")


def words_script(sources: Iterable[str]) -> str:
    """What stands in front of scripts that say sentences: those of them that `sources` say."""
    every, said = read_words(FILE), {name for source in sources for name in _SAID.findall(source)}
    words = json.dumps({name: every[name] for name in sorted(said)})
    return f"const WORDS = {words};\nconst LANGUAGE = {json.dumps(language_of(FILE))};\n"
