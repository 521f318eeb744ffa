"""The user's cache of imported models, and how a folder there is known to be whole.

An import is built in a hidden sibling folder and renamed into place when its last byte is on disk, so a
folder with the final name is complete or does not exist. Its manifest holds every file's size and SHA-256:
damage that comes later is found before a wrong number is shown.
"""

from __future__ import annotations

import errno
import hashlib
import json
import os
import shutil
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path

import platformdirs
from filelock import FileLock, Timeout

from engine.errors import CorruptModel, ImportFailed
from engine.progress import OnLoading

MANIFEST = "loupe.json"
PIECE_BYTES = 16 << 20
FORMAT = 1  # raise it when the importer writes something else: older folders are then imported anew


@dataclass(frozen=True, slots=True)
class Facts:
    """What an import knows that the folder's other files cannot say."""

    name: str
    origin: str  # "dequantised from Q4_1"
    licence: str
    source: str  # the file it was made from
    notes: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class FileMark:
    """Size and SHA-256 of one file."""

    size: int
    sha256: str


@dataclass(frozen=True, slots=True)
class Manifest:
    """An imported folder's own description."""

    facts: Facts
    files: dict[str, FileMark]


def cache_root() -> Path:
    """Where Loupe keeps what it makes; LOUPE_CACHE names another place."""
    named = os.environ.get("LOUPE_CACHE")
    return Path(named).expanduser().absolute() if named else platformdirs.user_cache_path("loupe")


def model_path(key: str) -> Path:
    return cache_root() / "models" / key


def path_for_file(file: Path) -> Path:
    """Where a person's own file is imported to. Another file under the same name goes elsewhere."""
    stat = file.stat()
    mark = hashlib.sha256(f"{file.resolve()}\n{stat.st_size}\n{stat.st_mtime_ns}".encode()).hexdigest()[:12]
    return model_path(f"{file.stem}-{mark}")


def read_manifest(folder: Path) -> Manifest | None:
    """The folder's description; None where it has none, is of another format, or cannot be read."""
    try:
        data = json.loads((folder / MANIFEST).read_text(encoding="utf-8"))
        if data["format"] != FORMAT:
            return None
        facts = data["facts"]
        files = {name: FileMark(mark["size"], mark["sha256"]) for name, mark in data["files"].items()}
        return Manifest(Facts(**{**facts, "notes": tuple(facts["notes"])}), files)
    except (OSError, ValueError, KeyError, TypeError, AttributeError):
        return None


def is_whole(folder: Path) -> bool:
    """True where every file of the manifest is there in its full size."""
    manifest = read_manifest(folder)
    return manifest is not None and all(
        (folder / name).is_file() and (folder / name).stat().st_size == mark.size
        for name, mark in manifest.files.items()
    )


def check_contents(folder: Path, manifest: Manifest) -> None:
    """Read every byte and compare; raises CorruptModel naming the file and the way out."""
    for name, mark in manifest.files.items():
        if _sha256(folder / name) != mark.sha256:
            raise CorruptModel(f"{folder / name} has changed since it was imported. Delete {folder} and start again.")


def files_mark(folder: Path) -> str:
    """The same for the same files: by their contents where a manifest has them, else by sizes and times of change."""
    manifest = read_manifest(folder)
    if manifest is not None:
        marks = [[name, mark.size, mark.sha256] for name, mark in sorted(manifest.files.items())]
    else:
        files = sorted(path for path in folder.iterdir() if path.suffix in (".json", ".safetensors"))
        marks = [[str(path), (seen := path.stat()).st_size, seen.st_mtime_ns] for path in files]
    return hashlib.sha256(json.dumps(marks).encode()).hexdigest()


def forget(folder: Path) -> None:
    """Throw away an imported folder, so that the next request makes it anew."""
    shutil.rmtree(folder, ignore_errors=True)


def import_once(target: Path, needed: int, build: Callable[[Path], Facts], progress: OnLoading) -> Path:
    """Build a model folder unless it is there and whole. Two processes at once: one builds, one waits.

    needed  free disk, in bytes, that the build takes at its widest
    build   fills an empty folder and returns what is to be remembered of it
    """
    if is_whole(target):
        return target
    try:
        target.parent.mkdir(parents=True, exist_ok=True)
        with _locked(target, progress):
            if not is_whole(target):
                _build(target, needed, build)
    except Exception as error:
        if _is_full_disk(error) or isinstance(error, OSError):
            raise _import_failed(target, needed, error) from error
        raise
    return target


@contextmanager
def _locked(target: Path, progress: OnLoading) -> Iterator[None]:
    """Hold the lock of one model folder; says so when somebody else has it."""
    lock = FileLock(target.with_name(f".{target.name}.lock"))
    try:
        lock.acquire(timeout=0.1)
    except Timeout:
        progress("Another process is importing this model; waiting for it", 0.0)
        lock.acquire()
    try:
        yield
    finally:
        lock.release()


def _build(target: Path, needed: int, build: Callable[[Path], Facts]) -> None:
    prefix = f".{target.name}.partial-"
    for stale in target.parent.glob(f"{prefix}*"):  # left by a process that was killed: we hold the lock
        shutil.rmtree(stale, ignore_errors=True)
    free = shutil.disk_usage(target.parent).free
    if free < needed:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
    partial = Path(tempfile.mkdtemp(prefix=prefix, dir=target.parent))
    try:
        facts = build(partial)
        _write_manifest(partial, facts)
        _sync(partial)
        if target.exists():
            shutil.rmtree(target)
        partial.rename(target)
        _sync_folder(target.parent)
    finally:
        shutil.rmtree(partial, ignore_errors=True)


def _write_manifest(folder: Path, facts: Facts) -> None:
    files = sorted(path for path in folder.rglob("*") if path.is_file())
    marks = {
        path.relative_to(folder).as_posix(): {"size": path.stat().st_size, "sha256": _sha256(path)} for path in files
    }
    data = {"format": FORMAT, "facts": asdict(facts), "files": marks}
    (folder / MANIFEST).write_text(json.dumps(data, indent=1), encoding="utf-8")


def _sync(folder: Path) -> None:
    """On disk before the rename: else a power cut could leave the final name with empty files."""
    for path in folder.rglob("*"):
        if path.is_file():
            with path.open("rb+") as file:
                os.fsync(file.fileno())
    _sync_folder(folder)


def _sync_folder(folder: Path) -> None:
    try:
        handle = os.open(folder, os.O_RDONLY)
    except PermissionError:  # Windows opens no folder, and writes the rename down by itself
        return
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


def _sha256(path: Path) -> str:
    """In large pieces: beside a busy interpreter each one waits for it."""
    mark, piece = hashlib.sha256(), memoryview(bytearray(min(PIECE_BYTES, path.stat().st_size + 1)))
    with path.open("rb", buffering=0) as file:
        while got := file.readinto(piece):
            mark.update(piece[:got])
    return mark.hexdigest()


def _is_full_disk(error: Exception) -> bool:
    """The weights' writer and pip have error types of their own, and carry the system's words in their text."""
    codes = (errno.ENOSPC, errno.EDQUOT)
    return getattr(error, "errno", None) in codes or os.strerror(errno.ENOSPC) in str(error)


def _import_failed(target: Path, needed: int, error: Exception) -> ImportFailed:
    place = target.parent
    way_out = "or name a folder on another disk: LOUPE_CACHE=/path/to/folder"
    if _is_full_disk(error):
        room = f"{needed / 1e6:,.0f} MB in {place}; {shutil.disk_usage(place).free / 1e6:,.0f} MB are free"
        return ImportFailed(f"The import needs {room}. Make room there, {way_out}")
    return ImportFailed(f"The import could not write to {place}: {error}. Make it writable, {way_out}")
