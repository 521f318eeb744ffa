"""Which tokens a frame has to spell: those that its records name and no record before them did.

A browser that holds the first steps of a history got them in frames of this page, with everything they name spelled.
"""

from __future__ import annotations

from engine.records import StepRecord
from explorer.live.record_payload import named_ids

Records = tuple[StepRecord, ...]


def common_length(held: Records, records: Records) -> int:
    """How many records two histories share from the start: the very same ones."""
    pairs = enumerate(zip(held, records, strict=False))
    return next((i for i, (one, other) in pairs if one is not other), min(len(held), len(records)))


class Spellings:
    """What each step named that no step before it did, in the history that was shown last."""

    def __init__(self) -> None:
        self._records: Records = ()
        self._named: list[set[int]] = []  # by index of a record
        self._known: set[int] = set()  # all of them

    def needed(self, records: Records, held: int) -> set[int]:
        """Ids that the records from number `held` on name first."""
        self._follow(records)
        return set[int]().union(*self._named[held:])

    def _follow(self, records: Records) -> None:
        same = common_length(self._records, records)
        if same < len(self._records):
            del self._named[same:]
            self._known = set[int]().union(*self._named)
        for record in records[same:]:
            self._named.append(named_ids(record) - self._known)
            self._known |= self._named[-1]
        self._records = records
