"""One claim as data: what is said, what it comes to when computed again, and how far it holds.

A claim never holds its own result. It holds inputs and a function over the cost model; the page calls that, and the
tests hold it against numbers of their own.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Any, Literal, get_args

from engine.costs import ModelShape
from engine.measure.hardware import HARDWARE, Hardware
from engine.shapes import NAMED

Verdict = Literal["exact", "rounded", "conditional", "wrong", "not verifiable"]
VERDICTS: tuple[Verdict, ...] = get_args(Verdict)

STEP = "step"  # the address of the one page that is no lab
GB, GIB, KIB = 1e9, 2**30, 2**10


@dataclass(frozen=True, slots=True)
class Number:
    """One computed value: what it is, and its unit ("" for a plain ratio)."""

    what: str
    value: float
    unit: str = ""


@dataclass(frozen=True, slots=True)
class Source:
    """Where a claim or a figure in it can be read."""

    name: str
    url: str = ""


@dataclass(frozen=True, slots=True)
class See:
    """Where a claim can be tried: a page by its address, and its controls as a link sets them."""

    url: str
    controls: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class Claim:
    """What is often said, and what comes of it.

    id       names it in links; never changes
    said     the claim, in our words
    verdict  how far it holds, and `because` why, or on what it depends
    formula  how the numbers come about, with `inputs` by their names
    compute  gives the numbers from the inputs
    measure  the check in explorer.claims.measured that runs it on the loaded model; empty where there is none
    is_contrary  the check looks for the contrary: where that holds, the claim does not
    """

    id: str
    said: str
    verdict: Verdict
    because: str
    formula: str
    source: Source
    inputs: Mapping[str, object] = field(default_factory=dict)
    compute: Callable[..., tuple[Number, ...]] | None = None
    see: See | None = None
    measure: str = ""
    is_contrary: bool = False

    @property
    def numbers(self) -> tuple[Number, ...]:
        """The numbers, computed now."""
        return () if self.compute is None else self.compute(**self.inputs)

    @property
    def sources(self) -> tuple[str, ...]:
        """Where the sizes of the models and the rates of the devices among the inputs are published."""
        names = [name for value in self.inputs.values() for name in _names(value)]
        models = [f"{name}: {NAMED[name].source}" for name in names if name in NAMED]
        return (*models, *(f"{name}: {HARDWARE[name].source}" for name in names if name in HARDWARE))


@dataclass(frozen=True, slots=True)
class Topic:
    """Claims about one thing."""

    id: str
    title: str
    claims: tuple[Claim, ...]


def shape(name: str) -> ModelShape:
    """A named model's shape."""
    return NAMED[name].shape


def device(name: str) -> Hardware:
    """A named device."""
    return HARDWARE[name]


def fixed(**inputs: Any) -> Mapping[str, object]:
    """Inputs that nobody changes."""
    return MappingProxyType(inputs)


def _names(value: object) -> tuple[str, ...]:
    if isinstance(value, str):
        return (value,)
    return tuple(part for part in value if isinstance(part, str)) if isinstance(value, tuple) else ()
