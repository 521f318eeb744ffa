"""A model's chat template, rendered as transformers renders it, within bounds.

A template is a program that came with the model. It runs in transformers' own sandbox, with the filters and functions
that transformers gives it, but not for longer than a moment and not to any length. Because it may look at the clock,
all renderings of one chat are given the same moment.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from datetime import datetime
from typing import Any

from jinja2 import TemplateError, TemplateSyntaxError, nodes
from jinja2.environment import Template
from jinja2.runtime import Context
from jinja2.sandbox import ImmutableSandboxedEnvironment
from jinja2.visitor import NodeTransformer
from transformers.utils.chat_template_utils import _compile_jinja_template

from engine.errors import PromptError
from engine.text.typed_text import TypedText

MAX_OUTPUT = 2_000_000  # characters: ten times the longest message that is read
MAX_SECONDS = 2.0
_MAX_EXPONENT = 64
_LONGEST_REASON = 300

Turn = Mapping[str, object]
Typed = Callable[[str], TypedText]


class ChatTemplate:
    """One compiled template. Not thread-safe."""

    def __init__(self, source: object, special_tokens: Mapping[str, Any]) -> None:
        if not isinstance(source, str):
            raise PromptError(f"The model's chat template is {type(source).__name__}, not text. Use the raw prompt.")
        self.source = source
        self._special_tokens = special_tokens
        self._environment = _environment()
        try:
            tree = _Bounded().visit(self._environment.parse(source))
            code = self._environment.compile(tree)
            self._template = Template.from_code(self._environment, code, self._environment.make_globals(None))
        except Exception as error:
            raise _fault(error) from error

    def render(self, turns: Sequence[Turn], now: datetime, typed: Typed | None = None) -> str:
        """The chat as text, the model's turn begun. `typed` gives strings with stand-ins in them their class back."""
        self._environment.begin(typed)
        rendered, length = [], 0
        variables = {
            "messages": list(turns),
            "tools": None,
            "documents": None,
            "add_generation_prompt": True,
            "strftime_now": now.strftime,
            **self._special_tokens,
        }
        try:
            for piece in self._template.generate(variables):
                self._environment.tick()
                length += len(piece)
                if length > MAX_OUTPUT:
                    raise _OutOfBounds(f"it writes more than {MAX_OUTPUT:,} characters")
                rendered.append(piece)
        except Exception as error:  # a template is somebody's program: it may raise anything
            raise _fault(error) from error
        return "".join(rendered)


class _OutOfBounds(TemplateError):
    """The template wants more than it may have."""


class _Environment(ImmutableSandboxedEnvironment):
    """transformers' sandbox with a clock, a bound on what one operator may make, and an eye on typed text."""

    intercepted_binops = frozenset({"+", "*", "**"})
    _typed: Typed | None = None
    _deadline = 0.0

    def begin(self, typed: Typed | None) -> None:
        """The clock starts."""
        self._typed, self._deadline = typed, time.monotonic() + MAX_SECONDS

    def tick(self) -> str:
        """Called in every turn of every loop and at every call of a macro."""
        if time.monotonic() > self._deadline:
            raise _OutOfBounds(f"it is not done after {MAX_SECONDS:g} seconds")
        return ""

    def joined(self, *parts: object) -> str:
        """What `~` makes."""
        return self.concat(map(str, parts))

    def concat(self, parts: Iterable[str]) -> str:
        """What a macro or a block returns."""
        whole = "".join(parts)
        if len(whole) > MAX_OUTPUT:
            raise _OutOfBounds(f"it puts together more than {MAX_OUTPUT:,} characters")
        return whole if self._typed is None else self._typed(whole)

    def getattr(self, obj: Any, attribute: str) -> Any:
        """A plain string may hold stand-ins that a filter has put together."""
        return super().getattr(self._typed(obj) if self._typed is not None and type(obj) is str else obj, attribute)

    def call_binop(self, context: Context, operator: str, left: Any, right: Any) -> Any:
        if operator == "**" and isinstance(right, int) and abs(right) > _MAX_EXPONENT:
            raise _OutOfBounds(f"it raises a number to the power {str(right)[:20]}")
        if operator != "**" and _size(operator, left, right) > MAX_OUTPUT:
            raise _OutOfBounds(f"it puts together more than {MAX_OUTPUT:,} characters")
        return super().call_binop(context, operator, left, right)


def _size(operator: str, left: Any, right: Any) -> int:
    """Characters or entries in what + or * makes; 0 for numbers."""
    is_long = [isinstance(side, (str, list, tuple)) for side in (left, right)]
    if all(is_long):
        return len(left) + len(right)
    if operator == "*" and any(is_long):
        whole, times = (left, right) if is_long[0] else (right, left)
        return len(whole) * times if isinstance(times, int) else 0
    return 0


class _Bounded(NodeTransformer):
    """Puts the clock into a template's loops and macros, and `~` where typed text can be followed."""

    def get_visitor(self, node: nodes.Node) -> Callable[..., Any]:
        """What is done with a node."""
        if isinstance(node, (nodes.For, nodes.Macro)):
            return self._timed
        return self._joined if isinstance(node, nodes.Concat) else self.generic_visit

    def _timed(self, node: nodes.For | nodes.Macro) -> nodes.Node:
        node.body.insert(0, nodes.ExprStmt(_call("tick", [], node), lineno=node.lineno))
        return self.generic_visit(node)

    def _joined(self, node: nodes.Concat) -> nodes.Node:
        self.generic_visit(node)
        return _call("joined", node.nodes, node)


def _call(name: str, arguments: list[nodes.Expr], at: nodes.Node) -> nodes.Call:
    return nodes.Call(nodes.EnvironmentAttribute(name), arguments, [], None, None, lineno=at.lineno)


def _environment() -> _Environment:
    """With all that transformers gives a template."""
    theirs = _compile_jinja_template("").environment
    ours = _Environment(
        trim_blocks=theirs.trim_blocks,
        lstrip_blocks=theirs.lstrip_blocks,
        extensions=[type(extension) for extension in theirs.extensions.values()],
    )
    ours.filters, ours.tests, ours.globals = theirs.filters, theirs.tests, dict(theirs.globals)
    return ours


def _fault(error: Exception) -> PromptError:
    """Whatever a template raised, as one sentence."""
    if isinstance(error, PromptError):
        return error
    said = " ".join(str(error).split())
    reason = said if len(said) <= _LONGEST_REASON else said[:_LONGEST_REASON] + " …"
    if isinstance(error, _OutOfBounds):
        return PromptError(f"The model's chat template was stopped: {reason}. Use the raw prompt.")
    if isinstance(error, TemplateSyntaxError):
        return PromptError(
            f"The model's chat template cannot be read, line {error.lineno}: {reason} Use the raw prompt."
        )
    if type(error) is TemplateError:  # raise_exception, a template's own way to refuse
        return PromptError(f"The model's chat template refuses these messages: {reason}")
    return PromptError(f"The model's chat template failed: {type(error).__name__}: {reason}. Use the raw prompt.")
