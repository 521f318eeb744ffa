"""A session as JSON for the tab's own storage: enough to rebuild it when the server has forgotten it.

Ids are the state and the prompt's text is only carried along, so nothing is tokenised again. The text
comes back from a browser, where anything may have happened to it: it is checked like any other input.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from itertools import groupby
from typing import TypeVar

from engine.config import ChosenToken, Recipe, SamplingParams, StopRules
from engine.tokens import Role
from explorer.live.frame import Json
from explorer.live.record_payload import sampling_json
from explorer.operations import checked
from explorer.operations.checked import BadCommand
from explorer.workspace.examples import PromptMode

T = TypeVar("T")

VERSION = 1
MAX_TOKENS = 200_000
_MAX_ID = 2**31 - 1
_EXACT_IN_BROWSER = 2**53 - 1
_ROLE_LETTERS: dict[str, Role] = {"t": "template", "p": "prompt"}


@dataclass(frozen=True, slots=True)
class SavedSession:
    """A recipe with what the page shows beside it.

    prompt        as typed; None where only its ids are known
    prompt_roles  one per prompt token
    """

    recipe: Recipe
    prompt: str | None
    mode: PromptMode
    prompt_roles: tuple[Role, ...]

    @property
    def roles(self) -> tuple[Role, ...]:
        """One per token of the recipe."""
        return self.prompt_roles + tuple("forced" if c.forced else "generated" for c in self.recipe.chosen)


def stop_json(stop: StopRules) -> dict[str, Json]:
    """The rules by name."""
    return {
        "use_end_ids": stop.use_end_ids,
        "max_new_tokens": stop.max_new_tokens,
        "stop_strings": list(stop.stop_strings),
        "max_kv_bytes": stop.max_kv_bytes,
    }


def seed_json(seed: int) -> int | str:
    """A number where the browser can hold it exactly, else its digits."""
    return seed if seed <= _EXACT_IN_BROWSER else str(seed)


def to_json(saved: SavedSession) -> dict[str, Json]:
    """Compact: settings are listed where they change, forced tokens by their step."""
    recipe = saved.recipe
    return {
        "version": VERSION,
        "model_id": recipe.model_id,
        "prompt": saved.prompt,
        "mode": saved.mode,
        "prompt_ids": list(recipe.prompt_ids),
        "roles": _pack_roles(saved.prompt_roles),
        "chosen_ids": [c.token_id for c in recipe.chosen],
        "forced": [i for i, c in enumerate(recipe.chosen) if c.forced],
        "settings": [[step, sampling_json(s)] for step, s in _changes([c.sampling for c in recipe.chosen])],
        "sampling": sampling_json(recipe.sampling),
        "stop": stop_json(recipe.stop),
        "seed": seed_json(recipe.seed),
        "seeds": [[step, seed_json(seed)] for step, seed in _changes([c.seed for c in recipe.chosen])],
    }


def since(whole: dict[str, Json], steps: int) -> dict[str, Json]:
    """What of `to_json` a browser lacks that has the same run's first `steps` steps: it puts the rest before it."""
    if not steps:
        return whole
    chosen = whole["chosen_ids"]
    assert isinstance(chosen, list), "ids are listed"
    kept = {name: value for name, value in whole.items() if name not in ("prompt", "prompt_ids", "roles")}
    return {**kept, "chosen_from": steps, "chosen_ids": chosen[steps:]}


def from_json(value: object) -> SavedSession:
    """Back from JSON. Raises BadCommand or InvalidSettings on anything that `to_json` would not have written."""
    given = checked.mapping(value, "recipe")
    if given.get("version") != VERSION:
        raise BadCommand("This tab's saved session was written by another version of Loupe. Prefill again.")
    prompt = given.get("prompt")
    prompt_ids = _ids(given.get("prompt_ids"), "prompt_ids")
    recipe = Recipe(
        model_id=checked.text(given.get("model_id"), "model_id", 500),
        prompt_ids=prompt_ids,
        chosen=_chosen(given),
        sampling=checked.sampling(given.get("sampling"), SamplingParams()),
        stop=checked.stop_rules(given.get("stop"), StopRules()),
        seed=checked.seed(given.get("seed")),
    )
    return SavedSession(
        recipe=recipe,
        prompt=None if prompt is None else checked.text(prompt, "prompt"),
        mode=checked.prompt_mode(given.get("mode")),
        prompt_roles=_unpack_roles(given.get("roles"), len(prompt_ids)),
    )


def _pack_roles(roles: tuple[Role, ...]) -> str:
    return "".join(f"{role[0]}{len(list(run))}" for role, run in groupby(roles))


def _unpack_roles(value: object, count: int) -> tuple[Role, ...]:
    packed = checked.text(value, "roles", 10_000)
    if not re.fullmatch(r"([tp][0-9]{1,6})*", packed):
        raise BadCommand(f"roles must be runs like t3p5, got {checked.short(packed)}.")
    runs = [(letter, int(length)) for letter, length in re.findall(r"([tp])([0-9]+)", packed)]
    total = sum(length for _, length in runs)
    if total != count:  # before anything is built: a forged run length must not cost memory
        raise BadCommand(f"roles cover {total} of {count} prompt tokens.")
    return tuple(_ROLE_LETTERS[letter] for letter, length in runs for _ in range(length))


def _changes(values: Sequence[T]) -> list[tuple[int, T]]:
    """(step, value) where a value differs from the one before."""
    pairs = enumerate(zip(values, [None, *values], strict=False))
    return [(i, value) for i, (value, before) in pairs if i == 0 or (value is not before and value != before)]


def _chosen(given: Mapping[str, object]) -> tuple[ChosenToken, ...]:
    ids = _ids(given.get("chosen_ids"), "chosen_ids")
    last = len(ids) - 1
    forced = {checked.whole(s, "forced", 0, last) for s in checked.sequence(given.get("forced"), "forced", len(ids))}
    sampling = _filled(given.get("settings"), "settings", len(ids), lambda v: checked.sampling(v, SamplingParams()))
    seeds = _filled(given.get("seeds"), "seeds", len(ids), checked.seed)
    return tuple(
        ChosenToken(token_id, step in forced, sampling[step], seeds[step]) for step, token_id in enumerate(ids)
    )


def _filled(value: object, name: str, count: int, read: Callable[[object], T]) -> list[T]:
    """One value per step, from the list of changes."""
    filled: list[T] = []
    for entry in checked.sequence(value, name, count):
        step, change = checked.pair(entry, f"a {name} entry")
        start = checked.whole(step, name, len(filled), count - 1)
        if not filled and start != 0:
            raise BadCommand(f"{name} must begin at step 0.")
        filled.extend(filled[-1:] * (start - len(filled)))
        filled.append(read(change))
    if count and not filled:
        raise BadCommand(f"{name} must begin at step 0.")
    return filled + filled[-1:] * (count - len(filled))


def _ids(value: object, name: str) -> tuple[int, ...]:
    return tuple(checked.whole(i, name, 0, _MAX_ID) for i in checked.sequence(value, name, MAX_TOKENS))
