"""Whatever keeps a model from being loaded or started, in words: the one place where such errors are caught.

A model's files come from anywhere, and its program is whatever transformers has for it: there is no list of what they
may raise. What is one of ours already says what to do; the rest is named, and logged with its traceback at debug level.
"""

from __future__ import annotations

import logging
from collections.abc import Iterator
from contextlib import contextmanager

from engine.errors import LoupeError, ModelTooLarge, UnsupportedModel
from engine.forward.faults import is_out_of_memory

log = logging.getLogger(__name__)

LONGEST = 300  # characters of somebody else's message


def in_short(error: Exception) -> str:
    """Somebody else's message on one line, cut where it lists what it was given."""
    said = " ".join(str(error).split())
    return said if len(said) <= LONGEST else f"{said[:LONGEST]} …"


@contextmanager
def in_words(model: str) -> Iterator[None]:
    """Let nothing but a LoupeError out."""
    try:
        yield
    except LoupeError:
        raise
    except Exception as error:
        if is_out_of_memory(error):
            raise ModelTooLarge(
                f"There was not enough memory for {model}. Use a smaller model, close other programs, or ask for "
                "bfloat16, which takes half of float32."
            ) from error
        log.debug("a model could not be loaded", exc_info=error)
        said = in_short(error)
        raise UnsupportedModel(
            f"{model} cannot be used here: {type(error).__name__}{': ' if said else ''}{said}. "
            "Its files may be damaged, or its architecture not fit. Fetch it again, or choose another model."
        ) from error
