"""Claims that can be run on the loaded model: what each run does, in words, and whether it may run here."""

from __future__ import annotations

from concurrent.futures import Future
from dataclasses import dataclass
from types import MappingProxyType
from typing import TYPE_CHECKING

from engine.errors import LoupeError
from engine.studies.claim_records import Finding
from explorer.engines import bridge
from explorer.hosting.limits import Hosting
from explorer.labs import live
from explorer.labs.progress import TaskProgress
from explorer.say import words_beside

if TYPE_CHECKING:
    from engine.llm_engine import LLMEngine

say = words_beside(__file__)


class NotInAClass(LoupeError):
    """A run that would disturb everybody else's."""


@dataclass(frozen=True, slots=True)
class Check:
    """One run: whether it takes the machine to itself for a while, and what its progress counts."""

    is_heavy: bool = False
    counts: str = say("counts.tokens")


CHECKS: MappingProxyType[str, Check] = MappingProxyType(
    {
        "logit_rows": Check(),
        "stateless": Check(),
        "greedy": Check(),
        "tiles": Check(counts=say("counts.layers")),
        "positions": Check(),
        "prefix": Check(),
        "appended": Check(),
        "cached_uncached": Check(),
        "count_100": Check(is_heavy=True, counts=say("counts.positions")),
        "shared_step": Check(is_heavy=True, counts=say("counts.rounds")),
        "streaming": Check(is_heavy=True),
    }
)


def does(name: str) -> str:
    """What a run does, in a sentence."""
    return say(f"check.{name}")


def begin(engine: LLMEngine, name: str, hosting: Hosting, report: TaskProgress) -> Future[Finding]:
    """Start a run on the loaded model. Raises NotInAClass where it would hold up a class."""
    if CHECKS[name].is_heavy and hosting.is_hosted:
        raise NotInAClass(say("card.not_in_a_class"))
    counts = CHECKS[name].counts
    return bridge.check_claim(engine, name, lambda done, total: report(done, total, counts), live.payer())
