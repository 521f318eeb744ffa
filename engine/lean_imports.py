"""Import torch and transformers without the parts of them that nothing here uses.

transformers' modelling code imports `torch.distributed` and marks a few functions for the compiler, which loads all of
`torch._dynamo` and sympy with it: more than a thousand modules, a third of a start, for what Loupe never does. While
transformers is imported, torch says that it has no distributed part, and a stand-in takes the compiler's marks. Both
are gone afterwards: whoever imports `torch._dynamo` later gets the real one.
"""

from __future__ import annotations

import gc
import sys
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from importlib.util import find_spec
from pathlib import Path
from types import ModuleType
from typing import Any
from unittest.mock import patch

COMPILER = "torch._dynamo"
MARKS = ("allow_in_graph", "assume_constant_result", "disable")  # decorators that only a compiler heeds
LOOK = "define_import_structure"
ENTRY = "transformers.modeling_utils"  # once this is there, there is nothing left to save


@contextmanager
def collecting_later() -> Iterator[None]:
    """No garbage collection within: a start makes a million objects to stay, and each pass would look at them all."""
    was_on = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_on:
            gc.enable()


def import_libraries() -> None:
    """Import what the engine needs of transformers. Raises ImportError where a package is missing."""
    if ENTRY in sys.modules:
        return
    import torch
    from transformers.utils import import_utils  # and transformers' lazy front, which asks torch for nothing

    with ExitStack() as stack:
        stack.enter_context(patch.object(torch.distributed, "is_available", lambda: False))
        stack.enter_context(patch.object(import_utils, LOOK, _once(getattr(import_utils, LOOK))))
        if COMPILER not in sys.modules:
            stack.enter_context(_without_compiler(torch))
        import transformers.masking_utils
        import transformers.modeling_utils  # noqa: F401


def _once(look: Callable[..., Any]) -> Callable[..., Any]:
    """transformers' search for what its files offer, without a second one through all of `models`.

    Its lazy front has made the first. Modules are found there as always; their names, in transformers itself.
    """

    def found(path: Any, prefix: str | None = None) -> Any:
        return {} if Path(path).parent.name == "models" else look(path, prefix=prefix)

    return found


@contextmanager
def _without_compiler(torch: ModuleType) -> Iterator[None]:
    stand_in = _stand_in()
    sys.modules[COMPILER] = stand_in
    torch._dynamo = stand_in  # type: ignore[attr-defined]
    try:
        yield
    finally:
        if sys.modules.get(COMPILER) is stand_in:
            del sys.modules[COMPILER]
        if torch.__dict__.get("_dynamo") is stand_in:
            del torch._dynamo  # torch imports the real one when somebody asks for it


def _stand_in() -> ModuleType:
    """A package with the compiler's own files, so that a single one can be imported, and marks that do nothing."""
    spec = find_spec(COMPILER)
    if spec is None:
        raise ImportError(f"torch has no {COMPILER}", name=COMPILER)
    module = ModuleType(COMPILER)
    module.__spec__, module.__file__, module.__path__ = spec, spec.origin, list(spec.submodule_search_locations or ())
    for name in MARKS:
        setattr(module, name, _mark)
    return module


def _mark(function: Callable[..., Any] | None = None, *_: object, **__: object) -> Callable[..., Any]:
    """A decorator, bare or with arguments, that changes nothing."""
    return function if function is not None else _mark
