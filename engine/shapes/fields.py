"""Fields of a config: by any of their names, checked, with messages that name the field and the fix."""

from __future__ import annotations

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
LARGEST = {"num_layers": 10_000, "num_heads": 100_000, "num_kv_heads": 100_000}
LARGEST_SIZE = 10_000_000  # of a width or a vocabulary: ten times the largest there is


@dataclass(frozen=True, slots=True)
class Fields:
    """A config's text part, with what a model type takes for granted where it is silent.

    assumed  collects in words what was taken from `defaults`
    prefix   where the fields lie in what was given: "text_config." or nothing
    """

    values: Mapping[str, Any]
    defaults: Mapping[str, object]
    prefix: str = ""
    assumed: list[str] = field(default_factory=list)

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
        for spelling in NAMES.get(name, (name,)):
            if self.values.get(spelling) is not None:
                return self._checked(spelling, self.values[spelling], LARGEST.get(name, LARGEST_SIZE))
        for spelling in NAMES.get(name, (name,)):
            if spelling in self.defaults:
                value = self.defaults[spelling]
                self.assumed.append(f"{spelling} is not in the config: {value}, transformers' default for this type")
                return self._checked(spelling, value, LARGEST_SIZE)
        return None

    def flag(self, wanted: bool | str) -> bool:
        """True or false as it is, or what the config's field of that name says."""
        if isinstance(wanted, bool):
            return wanted
        value = self.values.get(wanted)
        if value is None:
            return bool(self.defaults.get(wanted, False))
        if not isinstance(value, bool):
            raise InvalidConfig(f"{self.prefix}{wanted} must be true or false, got {value!r}.")
        return value

    def kinds(self) -> tuple[str, ...] | None:
        """The kind of attention per layer, where the config lists them."""
        kinds = self.values.get("layer_types")
        if kinds is None:
            return None
        if not isinstance(kinds, (list, tuple)) or not all(isinstance(kind, str) for kind in kinds):
            raise InvalidConfig(f"{self.prefix}layer_types must be a list of names, one per layer, got {kinds!r:.80}.")
        return tuple(kinds)

    def _checked(self, spelling: str, value: object, largest: int) -> int:
        if isinstance(value, bool) or not isinstance(value, (int, float)) or value != int(value):
            raise InvalidConfig(f"{self.prefix}{spelling} must be a whole number, got {value!r:.80}.")
        if not 1 <= value <= largest:
            raise InvalidConfig(
                f"{self.prefix}{spelling} must be between 1 and {largest:,}, got {value:,}. No model has that; "
                "look into its config.json again."
            )
        return int(value)
