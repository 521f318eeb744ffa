"""A run as a recording: one frame of the live line with everything the page shows of it, and who made it.

A `.loupe` file is a line that names the format and its version, then that frame, compressed (docs/recordings.md). So
the scripts that draw a live run draw a recorded one, and what is read back is what was on screen, to the bit.
"""

from __future__ import annotations

import gzip
import platform
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from importlib.metadata import PackageNotFoundError, version
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from engine.facts import ModelInfo
from engine.records import StepRecord
from explorer.live.frame import Json, Planes, pack
from explorer.live.model_payload import model_json, presets_json
from explorer.live.record_payload import (
    FULL_ATTENTION_KEYS,
    THUMB_BINS,
    JsonObject,
    max_pooled,
    named_ids,
    sampling_json,
    step_json,
)
from explorer.live.token_payload import Spelling, TokenList, pieces_json
from explorer.operations.measurements import floor_json, machine_json
from explorer.workspace.recipe_json import SavedSession, seed_json, stop_json, to_json

if TYPE_CHECKING:
    from engine.measure.machine_rates import MachineRates

VERSION = 1
MAGIC = b"loupe recording "
SUFFIX = ".loupe"
NAME = "recorded"  # of the session in it: no tab has it
MOST_ATTENTION_BYTES = 64_000_000  # of a run; beyond, long steps keep the largest weight of each of 64 stretches
LIBRARIES = ("torch", "transformers", "numpy")
LEVEL = 6  # of compression: the highest takes three times as long and saves 1 %

Rows: TypeAlias = NDArray[np.float16] | NDArray[np.uint8]


@dataclass(frozen=True, slots=True, eq=False)
class RecordedRun:
    """What is kept of a run.

    model_id   as whoever reads the recording may see it
    saved      recipe, prompt and mode
    records    one per step
    attention  of each record: (L, H, K) float16, K its kv_len, or (L, H, 64) uint8 as `kept_rows` pools them
    spelling   the model's tokenizer
    notes      what a person should know about how the prompt became tokens
    machine    what the machine was measured to do; None: nothing
    """

    info: ModelInfo
    model_id: str
    saved: SavedSession
    records: tuple[StepRecord, ...]
    attention: tuple[Rows, ...]
    spelling: Spelling
    notes: tuple[str, ...] = ()
    machine: MachineRates | None = None

    def __post_init__(self) -> None:
        steps, chosen = len(self.records), len(self.saved.recipe.chosen)
        assert steps == len(self.attention) == chosen, f"{steps} records, {len(self.attention)} rows, {chosen} tokens"


def recording_of(run: RecordedRun) -> bytes:
    """The run as a `.loupe` file."""
    return file_of(frame_of(run))


def file_of(frame: bytes) -> bytes:
    """A frame as a `.loupe` file; equal frames give equal files."""
    return MAGIC + f"{VERSION}\n".encode() + gzip.compress(frame, LEVEL, mtime=0)


def frame_of(run: RecordedRun) -> bytes:
    """The run as one frame of the live line (explorer/live/frame.py)."""
    planes, recipe = Planes(), run.saved.recipe
    ids = set[int]().union(*(named_ids(record) for record in run.records))
    header: JsonObject = {
        "loupe_recording": VERSION,
        "made": made_json(),
        "model": {**model_json(run.info), "id": run.model_id},
        "machine": machine_json(run.machine),
        "presets": presets_json(),
        "settings": _settings_json(run),
        "session": _session_json(run),
        "steps": _steps_json(run, planes),
        "tokens": TokenList(run.spelling).json(recipe.token_ids, run.saved.roles),
        "pieces": pieces_json(ids, run.spelling),
    }
    return pack(header, planes)


def made_json() -> dict[str, Json]:
    """When, and with which versions."""
    libraries: dict[str, Json] = {name: _version(name) for name in LIBRARIES}
    return {
        "at": datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ"),
        "python": platform.python_version(),
        "machine": f"{platform.system()} {platform.machine()}",
        **libraries,
    }


def _version(name: str) -> str:
    try:
        return version(name)
    except PackageNotFoundError:
        return "unknown"


def _settings_json(run: RecordedRun) -> JsonObject:
    recipe = run.saved.recipe
    return {
        "sampling": sampling_json(recipe.sampling),
        "stop": stop_json(recipe.stop),
        "seed": seed_json(recipe.seed),
        "solo": False,
    }


def _session_json(run: RecordedRun) -> JsonObject:
    """The run's facts, as the page is told them of a live one."""
    steps, tokens = len(run.records), len(run.saved.recipe.token_ids)
    return {
        "sid": NAME,
        "epoch": 0,
        "branch": 1,
        "branches": [{"id": 1, "label": "Branch 1", "steps": steps, "tokens": tokens, "parent": None, "at": None}],
        "mode": run.saved.mode,
        "notes": list(run.notes),
        **_settings_json(run),
        "finish_reason": run.records[-1].finish_reason if run.records else None,
        "prompt": run.saved.prompt,
        "recipe": {**to_json(run.saved), "model_id": run.model_id},
    }


def _steps_json(run: RecordedRun, planes: Planes) -> list[Json]:
    return [
        {**_step_json(record, rows, planes), "floor": floor_json(record, run.info)}
        for record, rows in zip(run.records, run.attention, strict=True)
    ]


def _step_json(record: StepRecord, rows: Rows, planes: Planes) -> JsonObject:
    step = step_json(record, planes, None)
    whole = rows.dtype == np.float16
    weights = {"attention": planes.add(rows, "f2")} if whole else {"attention_thumb": planes.add(rows, "u1")}
    arrays = step["planes"]
    assert isinstance(arrays, dict), "a step lists its arrays"
    return {**step, "planes": {**arrays, **weights}}


def fits(records: Sequence[StepRecord], info: ModelInfo, most_bytes: int = MOST_ATTENTION_BYTES) -> bool:
    """Whether every attention weight of these records is kept."""
    keys = sum(record.kv_len for record in records)
    return 2 * info.num_layers * info.num_heads * keys <= most_bytes


def kept_rows(weights: NDArray[np.floating[Any]], is_whole: bool) -> Rows:
    """What is kept of a step's weights (L, H, K): all in float16, or of a long step each stretch's largest."""
    if is_whole or weights.shape[-1] <= FULL_ATTENTION_KEYS:
        return weights.astype(np.float16)
    return max_pooled(weights, THUMB_BINS)
