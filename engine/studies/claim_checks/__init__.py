"""Claims run on the loaded model: each check is a few forwards on caches of its own, and a finding in numbers.

No session is touched, no prompt is kept. A check yields between forwards, so others step meanwhile, and reports how
far it is; what `report` raises ends it.
"""

from __future__ import annotations

import datetime
import secrets
from collections.abc import Callable
from concurrent.futures import Future
from dataclasses import replace
from types import MappingProxyType
from typing import TYPE_CHECKING

from engine.errors import LoupeError
from engine.progress import OnProgress
from engine.studies.claim_checks import cache, model, speed
from engine.studies.claim_checks.forwards import Check
from engine.studies.claim_records import Finding

if TYPE_CHECKING:
    from engine.llm_engine import LLMEngine

CHECKS: MappingProxyType[str, Callable[[LLMEngine, OnProgress], Check]] = MappingProxyType(
    {
        check.__name__: check
        for check in (
            model.logit_rows,
            model.stateless,
            model.greedy,
            model.tiles,
            cache.positions,
            cache.prefix,
            cache.appended,
            cache.cached_uncached,
            cache.count_100,
            speed.shared_step,
            speed.streaming,
        )
    }
)


def check(engine: LLMEngine, name: str, report: OnProgress, *, owner: str | None = None) -> Future[Finding]:
    """Begin the check of this name on the engine's thread, on `owner`'s time. Raises LoupeError where there is none."""
    if name not in CHECKS:
        raise LoupeError(f"There is no check {name!r}. Known: {', '.join(CHECKS)}.")

    def checked() -> Check:
        finding = yield from CHECKS[name](engine, report)
        info, now = engine.info, datetime.datetime.now(datetime.UTC)
        return replace(finding, measured=f"{info.name} in {info.dtype} on {info.device}, {now:%Y-%m-%d %H:%M} UTC")

    return engine.study(f"claim-{secrets.token_hex(8)}", lambda _: checked(), owner=owner)
