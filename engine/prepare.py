"""Have the model ready before the app starts: `python -m engine.prepare [model]`, with a bar in the terminal.

Where the model lies imported already, this returns without loading torch.
"""

from __future__ import annotations

import os
import sys
from types import TracebackType

from tqdm import tqdm

from engine.config import EngineConfig
from engine.errors import LoupeError
from engine.models.source import is_ready, locate


class TerminalProgress:
    """A progress callback that draws one bar, or one line per stage where the output is not a terminal."""

    def __enter__(self) -> TerminalProgress:
        self._bar: tqdm | None = None
        self._text = ""
        if sys.stderr.isatty():
            self._bar = tqdm(total=100, desc="Preparing the model", bar_format="{desc} {bar} {n:.0f} %", leave=False)
        return self

    def __exit__(self, kind: type[BaseException] | None, value: object, trace: TracebackType | None) -> None:
        if self._bar is not None:
            self._bar.close()

    def __call__(self, text: str, done: float) -> None:
        if self._bar is not None:
            self._bar.set_description_str(text, refresh=False)
            self._bar.n = 100 * done
            self._bar.refresh()
        elif text != self._text:
            print(text, file=sys.stderr, flush=True)
        self._text = text


def prepare(named: str) -> None:
    """Import the model if that has not been done. Raises LoupeError where it cannot be."""
    if is_ready(named):
        return
    from engine.models.load_errors import in_words  # loads torch, as the import does

    with TerminalProgress() as progress, in_words(named):
        locate(named, progress)


def main() -> None:
    prepare_or_exit(sys.argv[1] if len(sys.argv) > 1 else None)


def prepare_or_exit(named: str | None = None) -> None:
    """Prepare a model, by default the one LOUPE_MODEL names; a refusal ends the program with its message."""
    named = named or os.environ.get("LOUPE_MODEL") or EngineConfig().model
    try:
        prepare(named)
    except LoupeError as error:
        sys.exit(f"{error}")
    except KeyboardInterrupt:
        sys.exit("\nStopped. Nothing half-done is left behind; start again at any time.")


if __name__ == "__main__":
    main()
