"""What is said of a recording that cannot be opened: what is wrong, and the way out."""

from __future__ import annotations

from engine.errors import LoupeError
from explorer.recordings.writing import VERSION


class BadRecording(LoupeError):
    """A file that is no recording, is damaged, or comes from a newer Loupe."""


def not_one() -> BadRecording:
    return BadRecording(
        "This is not a Loupe recording. Choose a file that was saved by Loupe; its name ends in .loupe."
    )


def newer(version: int) -> BadRecording:
    return BadRecording(
        f"This recording has format {version}, and this Loupe reads up to {VERSION}. Open it with a newer Loupe."
    )


def cut() -> BadRecording:
    return BadRecording("This recording is damaged or was cut off on its way. Get the file once more.")


def too_large(most: int) -> BadRecording:
    return BadRecording(
        f"This recording unpacks to more than {most / 1e6:,.0f} MB, which no run of Loupe's takes. It was not opened."
    )


def wrong(where: str, what: str) -> BadRecording:
    return BadRecording(
        f"This recording does not fit together: {where} {what}. Get the file once more, or record the run again."
    )
