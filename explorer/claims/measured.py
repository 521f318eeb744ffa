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

if TYPE_CHECKING:
    from engine.llm_engine import LLMEngine


class NotInAClass(LoupeError):
    """A run that would disturb everybody else's."""


@dataclass(frozen=True, slots=True)
class CheckWords:
    """One run: what it does, whether it takes the machine to itself for a while, and what its progress counts."""

    does: str
    is_heavy: bool = False
    counts: str = "tokens"


CHECK_WORDS: MappingProxyType[str, CheckWords] = MappingProxyType(
    {
        "logit_rows": CheckWords("Feeds a sentence and counts the rows of logits that come out."),
        "stateless": CheckWords(
            "Reads a sentence, then another, then the first again, and compares all logits bit for bit."
        ),
        "greedy": CheckWords("Decodes 16 tokens greedily, twice, and compares tokens and logits."),
        "tiles": CheckWords(
            "Walks every head of the model over its keys, two at a time, beside float64.", counts="layers"
        ),
        "positions": CheckWords("Decodes 16 tokens and counts every position that is fed."),
        "prefix": CheckWords(
            "Changes the first token of a sentence and compares the last one’s keys and values, layer by layer."
        ),
        "appended": CheckWords(
            "Computes a sentence’s keys and values alone and with more text behind, and compares them."
        ),
        "cached_uncached": CheckWords(
            "Decodes 16 tokens with a cache and without, and compares tokens, logits and positions."
        ),
        "count_100": CheckWords(
            "Decodes 100 tokens from one, with a cache and without, counting all positions.",
            is_heavy=True,
            counts="positions",
        ),
        "shared_step": CheckWords(
            "Steps two texts in one forward pass and one by one, and compares logits and times.",
            is_heavy=True,
            counts="rounds",
        ),
        "streaming": CheckWords(
            "Measures this machine’s memory, then the time of 32 steps, and compares.", is_heavy=True
        ),
    }
)


def begin(engine: LLMEngine, name: str, hosting: Hosting, report: TaskProgress) -> Future[Finding]:
    """Start a run on the loaded model. Raises NotInAClass where it would hold up a class."""
    if CHECK_WORDS[name].is_heavy and hosting.is_hosted:
        raise NotInAClass(
            "This run would take the machine from everybody in the class. Start Loupe on a machine of your own for it."
        )
    counts = CHECK_WORDS[name].counts
    return bridge.check_claim(engine, name, lambda done, total: report(done, total, counts), live.payer())
