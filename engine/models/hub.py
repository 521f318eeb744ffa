"""Fetch a model from the Hub, saying plainly which of three things is wrong: no such model, no access, no network.

Only safetensors are taken: the older weight files are pickles, which can run code.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Literal

from huggingface_hub import HfApi, snapshot_download
from huggingface_hub.errors import GatedRepoError, HFValidationError, RepositoryNotFoundError

from engine.errors import ImportFailed, ModelNotFound, ModelUnreachable, UnsupportedModel
from engine.models.fit import check_fits
from engine.models.placement import device_for, dtype_for, free_on, memory_of
from engine.models.safetensors_files import INTEGERS, SINGLE, chosen_of
from engine.progress import OnLoading

if TYPE_CHECKING:
    import torch
    from huggingface_hub import ModelInfo as HubInfo

TIMEOUT_S = 8.0  # somebody is waiting: a Hub that does not answer is reported, not waited for
FILES = ["*.json", "*.jinja", "*.txt", "tokenizer.model"]  # and one set of weights


def fetch_from_hub(
    repo: str, progress: OnLoading, device: str, dtype: str, *, token: Literal[False] | None = None
) -> tuple[Path, str]:
    """The local folder of a Hub model, and its licence. Without a network, what was fetched earlier.

    token  None: the user's own, where there is one; False: none
    """
    progress(f"Asking the Hub for {repo}", 0.0)
    try:
        info = HfApi().model_info(repo, timeout=TIMEOUT_S, files_metadata=True, token=token)
    except GatedRepoError as error:
        raise ModelNotFound(
            f"{repo} asks for consent on its Hub page. Give it there, then set HF_TOKEN to your access token."
        ) from error
    except (RepositoryNotFoundError, HFValidationError) as error:
        raise ModelNotFound(
            f"There is no folder {Path(repo).absolute()}, and the Hub has no public model named {repo}. "
            "A private one needs HF_TOKEN."
        ) from error
    except Exception as error:  # the HTTP library behind the Hub client, and so its errors, differ by version
        return _fetched_earlier(repo, error), "see its Hub page"
    return _download(repo, info, progress, device, dtype, token), _licence(info)


def _licence(info: HubInfo) -> str:
    return str(info.card_data.get("license") or "not stated") if info.card_data else "not stated"


def _download(
    repo: str, info: HubInfo, progress: OnLoading, device: str, dtype: str, token: Literal[False] | None
) -> Path:
    sizes = {file.rfilename: file.size or 0 for file in info.siblings or ()}
    weights = chosen_of(sizes)
    if not weights:
        raise UnsupportedModel(f"{repo} has no safetensors weights on the Hub, and Loupe loads no others.")
    stored = sum(sizes[name] for name in weights)
    place = device_for(device)
    check_fits(repo, _held(info, stored, place, dtype), free_on(place), memory_of(place))
    progress(f"Downloading {repo} ({stored / 1e9:.1f} GB)", 0.1)
    try:
        return Path(
            snapshot_download(
                repo, revision=info.sha, allow_patterns=[*FILES, *weights], etag_timeout=TIMEOUT_S, token=token
            )
        )
    except OSError as error:
        raise ImportFailed(f"{repo} could not be stored: {error}. HF_HOME names another place for it.") from error
    except Exception as error:  # as above
        raise ModelUnreachable(
            f"The download of {repo} broke off: {error}. Start again: it goes on from there."
        ) from error


def _held(info: HubInfo, stored: int, device: torch.device, dtype: str) -> int:
    """Bytes of the weights once loaded; as stored where the Hub does not count them or their format stays."""
    counted = getattr(info.safetensors, "parameters", None) or {}
    keeps = dtype == "auto" and device.type != "cpu"
    if keeps or not counted:
        return stored
    width = dtype_for(dtype, device, None).itemsize
    return sum(count * INTEGERS.get(kind, width) for kind, count in counted.items())


def _fetched_earlier(repo: str, why: Exception) -> Path:
    try:
        return Path(
            snapshot_download(repo, allow_patterns=[*FILES, SINGLE, "model-*.safetensors"], local_files_only=True)
        )
    except OSError as error:
        raise ModelUnreachable(
            f"There is no folder {Path(repo).absolute()}, so {repo} was taken for a Hub model, and the Hub does not "
            f"answer: {why}. Check the network, or name a folder or a .gguf file."
        ) from error
