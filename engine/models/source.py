"""Find the model a person named: a registry name, a folder, a .gguf file, or a Hub id, in that order.

The disk is asked first. "models/llama" that does not exist is a missing folder before it is a Hub id, and
the message says that both were tried.
"""

from __future__ import annotations

import os
import re
from dataclasses import dataclass
from pathlib import Path

from engine.errors import CorruptModel, ModelNotFound, UnsupportedModel
from engine.models.model_folder import is_whole, model_path, path_for_file, read_manifest
from engine.models.registry import MODELS
from engine.progress import OnLoading

HUB_ID = re.compile(r"[A-Za-z0-9][\w.-]*(/[A-Za-z0-9][\w.-]*)?")


@dataclass(frozen=True, slots=True)
class Source:
    """A folder that transformers can load, and what is known of where it comes from.

    imported  the folder is Loupe's own work and can be made again
    """

    folder: Path
    name: str
    origin: str
    licence: str
    imported: bool = False
    notes: tuple[str, ...] = ()


def locate(
    named: str, progress: OnLoading, *, device: str = "auto", dtype: str = "auto", hub_token: bool = True
) -> Source:
    """The folder of the model, imported or downloaded first where needed.

    device, dtype  what it will be loaded for: a download that would not fit there is refused
    hub_token      whether the user's own token goes along to the Hub
    """
    if named in MODELS:
        return _from_registry(named, progress)
    path = Path(named).expanduser()
    if path.is_dir():
        return _from_folder(path)
    if path.is_file():
        return _from_file(path, progress)
    if _looks_like_path(named) or not HUB_ID.fullmatch(named):
        raise ModelNotFound(
            f"There is no folder or file {path.absolute()}. Names known here: {', '.join(MODELS)}; "
            "a model on the Hub is named owner/model."
        )
    from engine.models.hub import fetch_from_hub

    folder, licence = fetch_from_hub(named, progress, device, dtype, token=None if hub_token else False)
    return Source(folder, named.rpartition("/")[2], "from the Hub, as stored", licence)


def is_ready(named: str) -> bool:
    """True where loading needs no import or download first. Looks at the disk alone; loads no torch."""
    if named in MODELS:
        return is_whole(model_path(named))
    path = Path(named).expanduser()
    return path.is_dir() or (path.is_file() and is_whole(path_for_file(path)))


def _from_registry(named: str, progress: OnLoading) -> Source:
    target = model_path(named)
    if not is_whole(target):
        from engine.models.gguf_import import import_spec  # loads torch and transformers

        import_spec(MODELS[named], progress)
    return _imported(target)


def _from_file(path: Path, progress: OnLoading) -> Source:
    if path.suffix.lower() != ".gguf":
        raise UnsupportedModel(
            f"{path.absolute()} is no .gguf file. Name a .gguf file, or the folder with config.json."
        )
    from engine.models.gguf_import import import_gguf

    return _imported(import_gguf(path, progress))


def _imported(folder: Path) -> Source:
    manifest = read_manifest(folder)
    if manifest is None:
        raise CorruptModel(f"{folder} was changed while it was being read. Start again.")
    facts = manifest.facts
    return Source(folder, facts.name, facts.origin, facts.licence, imported=True, notes=facts.notes)


def _from_folder(path: Path) -> Source:
    if not (path / "config.json").is_file():
        gguf = sorted(path.glob("*.gguf"))
        hint = f" Did you mean {gguf[0]}?" if gguf else " It must be the folder that config.json is in."
        raise ModelNotFound(f"{path.absolute()} has no config.json, so it is no model folder.{hint}")
    return Source(path.absolute(), path.absolute().name, "local folder, as stored", "see its folder")


def _looks_like_path(named: str) -> bool:
    return (
        named.startswith((".", "~", os.sep))
        or named.lower().endswith((".gguf", ".safetensors"))
        or named.count("/") > 1
    )
