"""Fields of a config: by any of their names, checked, with messages that name the field and the fix.

Whatever is asked for is remembered, so that `engine.shapes.unread` can tell what nobody looked at.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from engine.errors import InvalidConfig

NAMES: dict[str, tuple[str, ...]] = {
    "num_layers": ("num_hidden_layers", "n_layer", "n_layers", "num_layers"),
    "num_heads": ("num_attention_heads", "n_head", "n_heads", "num_heads"),
    "num_kv_heads": ("num_key_value_heads", "num_kv_heads", "n_head_kv"),
    "hidden_size": ("hidden_size", "n_embd", "d_model"),
    "intermediate_size": ("intermediate_size", "n_inner", "ffn_dim", "ffn_hidden_size"),
    "vocab_size": ("vocab_size",),
    "context": ("max_position_embeddings", "n_positions", "max_seq_len", "n_ctx", "seq_length"),
}  # what a size is called, in the order in which names are tried
ONE_THING = ("num_layers", "num_heads", "num_kv_heads", "hidden_size")  # where two names may not disagree
LARGEST = {"num_layers": 10_000, "num_heads": 100_000, "num_kv_heads": 100_000}
LARGEST_SIZE = 10_000_000  # of a width or a vocabulary: ten times the largest there is


@dataclass(frozen=True, slots=True)
class Fields:
    """A config's text part, with what a model type takes for granted where it is silent.

    A field that is null is not silent: it says that there is none.

    assumed  collects in words what was taken from `defaults`
    doubts   collects in words what may make the numbers wrong
    seen     collects the names that were asked for
    prefix   where the fields lie in what was given: "text_config." or nothing
    """

    values: Mapping[str, Any]
    defaults: Mapping[str, object]
    prefix: str = ""
    assumed: list[str] = field(default_factory=list)
    doubts: list[str] = field(default_factory=list)
    seen: set[str] = field(default_factory=set)

    def get(self, name: str) -> Any:
        """What the config says, or else what its type takes for granted; None where neither says."""
        self.seen.add(name)
        if name in self.values:
            return self.values[name]
        value = self.defaults.get(name)
        if value is not None:
            said = f"{name} is not in the config: {value}, transformers' default for this type"
            if said not in self.assumed:
                self.assumed.append(said)
        return value

    def size(self, name: str) -> int:
        """A size that must be there. Raises InvalidConfig."""
        found = self.optional_size(name)
        if found is None:
            first, *others = NAMES.get(name, (name,))
            aliases = f" ({', '.join(others)} would do as well)" if others else ""
            raise InvalidConfig(
                f"The config has no {self.prefix}{first}{aliases}. "
                "Add it: a whole number, as in the model's config.json."
            )
        return found

    def optional_size(self, name: str) -> int | None:
        """A size, or None where the config does not say. Raises InvalidConfig for a value that cannot be."""
        spellings = NAMES.get(name, (name,))
        self.seen.update(spellings)
        given = {s: self.values[s] for s in spellings if self.values.get(s) is not None}
        found = {s: self._checked(s, value, LARGEST.get(name, LARGEST_SIZE)) for s, value in given.items()}
        if name in ONE_THING and len(set(found.values())) > 1:
            said = " and ".join(f"{self.prefix}{s} {value:,}" for s, value in found.items())
            raise InvalidConfig(f"The config says {said}: two values for one thing. Take out the wrong one.")
        if found:
            return next(iter(found.values()))
        silent = [s for s in spellings if s in self.defaults and s not in self.values]
        return self._checked(silent[0], self.get(silent[0]), LARGEST_SIZE) if silent else None

    def whole(self, name: str, otherwise: int = 0) -> int:
        """A whole number from 0, such as an offset or a count of layers; `otherwise` where nobody says."""
        value = self.get(name)
        return otherwise if value is None else self._checked(name, value, LARGEST_SIZE, least=0)

    def flag(self, wanted: bool | str) -> bool:
        """True or false as it is, or what the config's field of that name says."""
        if isinstance(wanted, bool):
            return wanted
        self.seen.add(wanted)
        value = self.values.get(wanted)
        if value is None:
            return bool(self.defaults.get(wanted, False))
        if not isinstance(value, bool):
            raise InvalidConfig(f"{self.prefix}{wanted} must be true or false, got {shown(value)}.")
        return value

    def names(self, name: str) -> tuple[str, ...] | None:
        """A list of words, one a layer, where the config has it."""
        value = self.get(name)
        if value is None:
            return None
        if not isinstance(value, (list, tuple)) or not all(isinstance(kind, str) for kind in value):
            raise InvalidConfig(f"{self.prefix}{name} must be a list of names, one per layer, got {shown(value)}.")
        return tuple(value)

    def numbers(self, name: str) -> tuple[int, ...] | None:
        """A list of whole numbers, where the config has it."""
        value = self.get(name)
        if value is None:
            return None
        if not isinstance(value, (list, tuple)) or not all(type(one) is int for one in value):
            raise InvalidConfig(f"{self.prefix}{name} must be a list of whole numbers, got {shown(value)}.")
        return tuple(value)

    def part(self, name: str) -> Mapping[str, Any]:
        """An object within the config; empty where there is none."""
        value = self.get(name)
        if value is None:
            return {}
        if not isinstance(value, Mapping):
            raise InvalidConfig(f"{self.prefix}{name} must be an object with named fields, got {shown(value)}.")
        return value

    def _checked(self, spelling: str, value: object, largest: int, *, least: int = 1) -> int:
        is_number = isinstance(value, (int, float)) and not isinstance(value, bool)
        if not is_number or (isinstance(value, float) and not (math.isfinite(value) and value.is_integer())):
            raise InvalidConfig(f"{self.prefix}{spelling} must be a whole number, got {shown(value)}.")
        assert isinstance(value, (int, float))
        if not least <= value <= largest:
            raise InvalidConfig(
                f"{self.prefix}{spelling} must be between {least} and {largest:,}, got {shown(value)}. No model has "
                "that; look into its config.json again."
            )
        return int(value)


def shown(value: object) -> str:
    """A value in a message: short, whatever it is."""
    if type(value) is int and value.bit_length() > 130:
        return f"a number of about {round(value.bit_length() * math.log10(2)):,} digits"
    if type(value) is int:
        return f"{value:,}"
    if isinstance(value, (str, float, bool)) or value is None:
        return f"{value!r:.80}" if not isinstance(value, str) else repr(value[:80])
    if isinstance(value, (list, tuple)):
        return f"a list of {len(value)}"
    return f"an object of {len(value)}" if isinstance(value, dict) else "another kind of value"
