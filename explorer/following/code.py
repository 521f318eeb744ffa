"""The short code under which somebody leads: read aloud, typed by hand, and not guessed.

Eight signs of an alphabet of 31 are 31^8 = 8.5e11 codes. A classroom behind one address types some of them wrong, so
an address may try sixty at once and then one a second: 86,460 on the first day. With a hundred people leading, it finds
one of their codes within that day with a probability of 1e-5.
"""

from __future__ import annotations

import re
import secrets

from explorer.gate.attempts import Attempts

ALPHABET = "ABCDEFGHJKMNPQRSTUVWXYZ23456789"  # without I, L, O, 0 and 1, which are read as each other
LENGTH = 8
WRONG_AT_ONCE, WRONG_EVERY_S = 60, 1.0


def new_code() -> str:
    """A code that nobody can foresee."""
    return "".join(secrets.choice(ALPHABET) for _ in range(LENGTH))


def typed_code(text: str) -> str:
    """A code as somebody typed it: any case, with spaces or hyphens."""
    return re.sub(r"[\s-]", "", text).upper()[: LENGTH + 1]


def code_attempts() -> Attempts:
    """Wrong codes by address."""
    return Attempts(what="code", at_once=WRONG_AT_ONCE, every_s=WRONG_EVERY_S)
