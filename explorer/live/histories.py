"""Which records a page has that names a history by its epoch.

An epoch names one history of one run. The same number is never given to two histories, not of another branch and not
after a restart, so a match is proof.
"""

from __future__ import annotations

import itertools
import secrets

from engine.records import StepRecord

Records = tuple[StepRecord, ...]

MOST = 4  # a page that reports an older one gets everything again

_epochs = itertools.count(secrets.randbelow(2**40))  # another start for every process


class Histories:
    """The latest histories of one tab that were shown."""

    def __init__(self) -> None:
        self._shown: tuple[str, int] | None = None  # a session, and its own epoch
        self._epoch = next(_epochs)
        self._records: dict[int, Records] = {}

    def epoch_of(self, session: str, session_epoch: int, records: Records) -> int:
        """The epoch under which these records are shown."""
        if self._shown != (session, session_epoch):
            self._shown = (session, session_epoch)
            self._epoch = next(_epochs)
        self._records[self._epoch] = records
        while len(self._records) > MOST:
            del self._records[min(self._records)]  # epochs only grow
        return self._epoch

    def held(self, epoch: int, steps: int) -> Records:
        """The records a page has that reports so many steps of a history."""
        return self._records.get(epoch, ())[:steps]
