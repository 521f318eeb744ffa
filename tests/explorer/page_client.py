"""The browser's side of the wire, as store.js and wire.js do it: repeats commands, merges frames, waits for answers."""

from __future__ import annotations

import itertools
import threading
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

from engine.llm_engine import LLMEngine
from explorer.hosting.runtime import Runtime, Tab
from explorer.live.frame import read_plane, unpack
from explorer.live.wire import parse

_names = itertools.count()


class Page:
    """One page instance in one browser tab."""

    def __init__(
        self, server: Runtime, *, owner: str | None = None, params: Mapping[str, Sequence[str]] | None = None
    ) -> None:
        self.server = server
        self.owner = owner or f"owner{next(_names)}"
        self.mount = f"mount{next(_names)}"
        self.tab: Tab = server.open_tab(self.owner, params or {}, server.pool.request())
        self.next = 1
        self.open: list[dict[str, Any]] = []
        self.ack = 0
        self.epoch = -1
        self.steps: list[dict[str, Any]] = []
        self.answers: dict[int, dict[str, Any]] = {}
        self.header: dict[str, Any] = {}
        self.tokens: list[dict[str, Any]] = []

    def queue(self, op: str, **args: Any) -> int:
        """Put a command into the log without saying it yet. The first is always a greeting."""
        if self.next == 1 and op != "hello":
            self.queue("hello")
        self.open.append({"n": self.next, "op": op, **args})
        self.next += 1
        return self.next - 1

    def value(self) -> dict[str, Any]:
        """The state value as setStateValue would send it."""
        have = {"epoch": self.epoch, "steps": len(self.steps)}
        return {"mount": self.mount, "have": have, "seen": self.ack, "cmds": [dict(c) for c in self.open]}

    def say(self, value: dict[str, Any] | None = None) -> dict[str, Any]:
        """One round: the callback, the body, the frame."""
        self.tab = self.server.receive(self.tab, self.owner, parse(value or self.value()))
        return self.take(self.tab.frames.build())

    def take(self, frame: bytes) -> dict[str, Any]:
        """Merge a frame."""
        header, planes = unpack(frame)
        held, self.header = self.header, hydrated(header, planes)
        self._complete(held)
        self.ack = max(self.ack, self.header["ack"])
        self.open = [command for command in self.open if command["n"] > self.ack]
        self.answers.update({answer["n"]: answer for answer in self.header["answers"]})
        session = self.header["session"]
        if session is None:
            self.epoch, self.steps = -1, []
        else:
            known = self.epoch in (session["epoch"], self.header["keeps"])
            held = self.steps if known else []
            start = self.header["steps_from"]
            assert start <= len(held), "a frame left a gap"
            self.epoch, self.steps = session["epoch"], [*held[:start], *self.header["steps"]]
        return self.header

    def _complete(self, held: dict[str, Any]) -> None:
        """Put what the frame left out, because this page has it already, back in."""
        header = self.header
        if "tokens" in header:
            start = header["tokens_from"]
            assert start <= len(self.tokens), "a frame left a gap"
            header["tokens"] = self.tokens = [*self.tokens[:start], *header["tokens"]]
        header["pieces"] = {**held.get("pieces", {}), **header["pieces"]}
        recipe = (header["session"] or {}).get("recipe", {})
        if "chosen_from" in recipe:
            start, known = recipe.pop("chosen_from"), held["session"]["recipe"]
            recipe["chosen_ids"] = [*known["chosen_ids"][:start], *recipe["chosen_ids"]]
            recipe.update({name: known[name] for name in ("prompt", "prompt_ids", "roles")})
            header["session"]["prompt"] = held["session"]["prompt"]

    def ask(self, op: str, **args: Any) -> dict[str, Any]:
        """Say a command and keep asking until it is answered."""
        n = self.queue(op, **args)
        for _ in range(400):
            self.say()
            if n in self.answers:
                return self.answers[n]
        raise AssertionError(f"{op} was never answered")

    def ok(self, op: str, **args: Any) -> dict[str, Any]:
        """The value of a command that must succeed."""
        answer = self.ask(op, **args)
        assert answer["ok"], answer
        value: dict[str, Any] = answer["value"]
        return value

    @property
    def drawn(self) -> list[int]:
        """The tokens on screen after the prompt."""
        return [step["draw"]["token_id"] for step in self.steps]


def hydrated(value: Any, planes: bytes) -> Any:
    """A header with every description of an array replaced by the array."""
    if isinstance(value, list):
        return [hydrated(inner, planes) for inner in value]
    if not isinstance(value, dict):
        return value
    if set(value) == {"dtype", "shape", "offset"}:
        return read_plane(planes, value)  # type: ignore[arg-type]
    return {name: hydrated(inner, planes) for name, inner in value.items()}


@contextmanager
def engine_held(page: Page) -> Iterator[threading.Event]:
    """Keep the engine's thread busy until the event is set: whatever is asked for meanwhile stays under way."""
    started, free = threading.Event(), threading.Event()

    def work():
        yield from ()
        started.set()
        free.wait(30)

    done = page.tab.workspace.engine.submit("holder", work)
    started.wait(30)
    try:
        yield free
    finally:
        free.set()
        done.result(timeout=30)


def settle(engine: LLMEngine) -> None:
    """Wait until the engine has done what was asked of it so far."""
    deadline = time.monotonic() + 30
    while engine.counters().waiting and time.monotonic() < deadline:
        time.sleep(0.005)


def prefilled(page: Page, prompt: str = "abc") -> Page:
    """The page, with a prompt prefilled."""
    page.ok("prefill", prompt=prompt, mode="raw")
    return page
