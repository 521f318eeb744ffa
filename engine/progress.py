"""How long work tells how far it is."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeAlias

OnProgress: TypeAlias = Callable[[int, int], None]  # pieces done, pieces in all
OnLoading: TypeAlias = Callable[[str, float], None]  # what is being done, and how much of the whole is done: 0 to 1
