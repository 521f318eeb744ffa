"""Keep transformers from writing to the terminal while it loads: its bars and advice are not for our users.

What matters of them (missing weights, say) is asked for and checked instead.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from transformers.utils import logging as _untyped

logging: Any = _untyped


@contextmanager
def quiet_transformers() -> Iterator[None]:
    verbosity, bars = logging.get_verbosity(), logging.is_progress_bar_enabled()
    logging.set_verbosity_error()
    logging.disable_progress_bar()
    try:
        yield
    finally:
        logging.set_verbosity(verbosity)
        if bars:
            logging.enable_progress_bar()
