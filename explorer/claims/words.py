"""Claims in words: numbers with their units, inputs by name, and everything as rows for a table."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from engine.studies.claim_records import Reading
from explorer.claims.catalogue import TOPICS
from explorer.claims.claim import Claim, Number
from explorer.labs.charts import number_text

PREFIXED = ("B", "B/s", "FLOP/s")  # units that take a prefix


def number_words(number: Number) -> str:
    """Whole numbers in full, others with four digits: 131,072 B (131 kB); 19.09 ×."""
    value, unit = number.value, number.unit
    if float(value).is_integer() and abs(value) < 1e15:
        text = f"{int(value):,} {unit}".strip()
        is_long = unit in PREFIXED and abs(value) >= 1e5
        return f"{text} ({number_text(value, unit)})" if is_long else text
    if unit in PREFIXED:
        return number_text(value, unit)
    return f"{_four_digits(value)} {unit}".strip()


def _four_digits(value: float) -> str:
    if value and not 1e-3 <= abs(value) < 1e6:
        return f"{value:.3g}"
    return f"{value:,.{max(0, 4 - len(str(int(abs(value)))))}f}" if abs(value) >= 1 else f"{value:.4g}"


def as_number(reading: Reading) -> Number:
    """A measured number, to be written like a computed one."""
    return Number(reading.what, reading.value, reading.unit)


def input_words(claim: Claim) -> str:
    """The inputs by name, as the computation takes them."""
    return ", ".join(f"{name.replace('_', ' ')} = {_plain(value)}" for name, value in claim.inputs.items())


def _plain(value: object) -> str:
    if isinstance(value, tuple):
        return " / ".join(_plain(part) for part in value)
    if isinstance(value, float):
        power = 3 * ((len(str(int(abs(value)))) - 1) // 3) if abs(value) >= 1e6 else 0
        return f"{value / 10**power:,.6g}" + (f"e{power}" if power else "")
    return f"{value:,}" if isinstance(value, int) else " ".join(str(value).split())


def numbers_words(numbers: Iterable[Number]) -> str:
    """All numbers of a claim in one line."""
    return "; ".join(f"{number.what}: {number_words(number)}" for number in numbers)


def rows(claims: Iterable[Claim]) -> list[Mapping[str, object]]:
    """One row per claim, for the CSV; numbers computed now."""
    topics = {claim.id: topic.title for topic in TOPICS for claim in topic.claims}
    return [
        {
            "id": claim.id,
            "topic": topics[claim.id],
            "claim": claim.said,
            "verdict": claim.verdict,
            "why": claim.because,
            "computed": numbers_words(claim.numbers),
            "formula": claim.formula,
            "inputs": input_words(claim),
            "source": "; ".join((claim.source.name, *claim.sources)),
        }
        for claim in claims
    ]


def matches(claim: Claim, words: str) -> bool:
    """Whether every word of a search is somewhere in the claim."""
    text = " ".join((claim.id, claim.said, claim.because, claim.formula, input_words(claim), claim.source.name)).lower()
    return all(word in text for word in words.lower().split())
