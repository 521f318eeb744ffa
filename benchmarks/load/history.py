"""Holds a page's history against its presses: every press is one step, no more and no less."""

from __future__ import annotations

from benchmarks.load.page import Answer, Page
from benchmarks.load.seen import EXPECTED, Seen


class History:
    """How many steps a session must have, by the answers alone. `newest` is the index of the last one."""

    def __init__(self, seen: Seen) -> None:
        self._seen = seen
        self.newest = -1

    def prefilled(self) -> None:
        """A new run: step 0."""
        self.newest = 0

    def answered(self, answer: Answer) -> bool:
        """Take the answer to a press of Step. True where it led to the step that had to come next."""
        if answer.error is not None:
            self._failed(*answer.error)
            return False
        assert answer.value is not None, "an answer has a value or an error"
        index = int(answer.value["step"])
        self._expect(index, self.newest + 1)
        self.newest = index
        return index > 0

    def played(self, index: int) -> None:
        """Take a step that the server made by itself."""
        self._expect(index, self.newest + 1)
        self.newest = index

    def settled(self, page: Page) -> None:
        """Nothing is under way any more: the records must be as many as the answers said, and in order."""
        found = [int(step["index"]) for step in page.steps]
        if found != list(range(len(found))):
            self._seen.error("OutOfOrder", f"the records are {found}")
        self._expect(len(found) - 1, self.newest)

    def resumed(self, page: Page, under_way: int) -> None:
        """After a reload: everything answered is there, and at most what was `under_way` besides."""
        newest = len(page.steps) - 1
        self._expect(newest, min(max(newest, self.newest), self.newest + under_way))
        self.newest = newest

    def _expect(self, index: int, wanted: int) -> None:
        self._seen.doubled += max(0, index - wanted)
        self._seen.lost += max(0, wanted - index)

    def _failed(self, kind: str, message: str) -> None:
        if kind in EXPECTED:
            self._seen.refused += 1
            return
        self._seen.error(kind, message)
        if kind == "AnswerLost":  # the step ran all the same
            self.newest += 1
