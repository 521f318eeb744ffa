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
    """The step that named each token first, in the history that was shown last."""

    def __init__(self) -> None:
        self._records: Records = ()
        self._first: dict[int, int] = {}  # id -> index of a record

    def needed(self, records: Records, held: int) -> set[int]:
        """Ids that the records from number `held` on name first."""
        self._follow(records)
        return {token_id for token_id, step in self._first.items() if step >= held}

    def _follow(self, records: Records) -> None:
        same = common_length(self._records, records)
        if same < len(self._records):
            self._first = {token_id: step for token_id, step in self._first.items() if step < same}
        for step in range(same, len(records)):
            for token_id in named_ids(records[step]):
                self._first.setdefault(token_id, step)
        self._records = records
