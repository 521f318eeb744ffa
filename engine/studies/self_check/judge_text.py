"""The generated text of a record, from the bytes of its tokens, by rules of UTF-8 written down here."""

from __future__ import annotations

from engine.records import StepRecord
from engine.studies.self_check.findings import Tally


def judge_text(
    tally: Tally, record: StepRecord, name: str, before: bytes, after: bytes, stops: tuple[str, ...]
) -> None:
    """Text shown, text held back, bytes pending.

    before, after  the bytes of all generated tokens, without and with the newest
    stops          the stop strings that were in force
    """
    text, pending = text_of(after)
    tally.same(f"{name} bytes of an unfinished character", record.pending, pending)
    tally.same(f"{name} text with what is held back", record.text + record.held, text)
    held = _held(text, len(text_of(before)[0]), stops, ended=record.finish_reason is not None)
    tally.same(f"{name} text held back", record.held, held)


def text_of(data: bytes) -> tuple[str, bytes]:
    """The whole characters of some bytes, and the bytes of a last one that is not complete."""
    pending = unfinished(data)
    return data[: len(data) - len(pending)].decode(errors="replace"), pending


def found_at(text: str, seen: int, stops: tuple[str, ...]) -> int | None:
    """Where the first stop string begins, among those that end beyond the first `seen` characters."""
    starts = [
        end - len(stop) for stop in stops if stop for end in range(seen + 1, len(text) + 1) if text[:end].endswith(stop)
    ]
    return min(starts, default=None)


def unfinished(data: bytes) -> bytes:
    """The last bytes, where they begin a character that more bytes could complete."""
    for size in (1, 2, 3):
        tail = data[-size:]
        if len(tail) == size and any(_completes(tail, more) for more in range(1, 5 - size)):
            return tail
    return b""


def _completes(tail: bytes, more: int) -> bool:
    """Whether `tail` and so many continuation bytes make exactly one character.

    ED A0 to ED BF begin half of a surrogate pair, which is no character; Python waits for its third byte all the same.
    """
    if len(tail) == 2 and tail[0] == 0xED and 0xA0 <= tail[1] <= 0xBF:
        return True
    for byte in (0x80, 0x8F, 0x90, 0x9F, 0xA0, 0xBF):  # the ends of every range that a second byte may lie in
        try:
            if len((tail + bytes([byte] + [0x80] * (more - 1))).decode()) == 1:
                return True
        except UnicodeDecodeError:
            continue
    return False


def _held(text: str, seen: int, stops: tuple[str, ...], *, ended: bool) -> str:
    """From a stop string on, once one is there; before that, the longest ending that may grow into one."""
    start = found_at(text, seen, stops)
    if start is not None:
        return text[start:]
    beginnings = {stop[:size] for stop in stops for size in range(1, len(stop))}
    return "" if ended else max((b for b in beginnings if text.endswith(b)), key=len, default="")
