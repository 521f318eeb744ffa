"""What went wrong, in words for a person; the traceback goes to the log."""

from __future__ import annotations

import logging

import torch

from engine.errors import EngineFault, LoupeError

log = logging.getLogger(__name__)


def as_loupe_error(error: Exception) -> LoupeError:
    """The error as something a person can read; what is none of ours is logged with its traceback."""
    if isinstance(error, LoupeError):
        return error
    log.error("a request failed on the engine thread", exc_info=error)
    detail = f"{type(error).__name__}: {error}"
    if is_out_of_memory(error):
        words = "There was not enough memory for this step. Close other sessions, or shorten the prompt."
        return EngineFault(words, detail)
    return EngineFault("This step failed inside the model. The session is as it was; try it again.", detail)


def is_out_of_memory(error: Exception) -> bool:
    """True for CUDA's error, Python's, and the plain RuntimeError of PyTorch's CPU allocator."""
    if isinstance(error, (torch.OutOfMemoryError, MemoryError)):
        return True
    return isinstance(error, RuntimeError) and "can't allocate memory" in str(error)
