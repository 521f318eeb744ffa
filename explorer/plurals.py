"""Which form of a sentence a count takes: the categories of Unicode's CLDR, as `Intl.PluralRules` gives them.

Only for whole numbers from 0 up. A test holds every rule against a browser's.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from types import MappingProxyType

Rule = Callable[[int], str]


def _one_or_other(n: int) -> str:
    return "one" if n == 1 else "other"


def _always_other(_: int) -> str:
    return "other"


def _polish(n: int) -> str:
    return "one" if n == 1 else "few" if _is_few(n) else "many"


def _russian(n: int) -> str:
    return "one" if n % 10 == 1 and n % 100 != 11 else "few" if _is_few(n) else "many"


def _is_few(n: int) -> bool:
    return n % 10 in (2, 3, 4) and n % 100 not in (12, 13, 14)


RULES: Mapping[str, Rule] = MappingProxyType(
    {
        **dict.fromkeys(("en", "de", "nl", "sv"), _one_or_other),
        **dict.fromkeys(("ja", "ko", "zh"), _always_other),
        "pl": _polish,
        **dict.fromkeys(("ru", "uk"), _russian),
    }
)


def category(language: str, n: int) -> str:
    """The category of a count in a language, by its code: "one" of 1 in English."""
    if language not in RULES:
        raise ValueError(
            f"There is no plural rule for {language!r} here, only for {', '.join(RULES)}. "
            "Add one in explorer/plurals.py."
        )
    return RULES[language](n)
