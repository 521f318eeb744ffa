"""The shape of a model on the Hub: its config.json is fetched, nothing else, and no program code is run."""

from __future__ import annotations

import re
from pathlib import Path

from huggingface_hub import hf_hub_download
from huggingface_hub.errors import EntryNotFoundError, GatedRepoError, LocalEntryNotFoundError, RepositoryNotFoundError

from engine.costs.shape import ModelShape
from engine.errors import InvalidConfig, ModelNotFound, ModelUnreachable
from engine.shapes.config import from_json
from engine.shapes.config_text import MOST_CHARACTERS

TIMEOUT_S = 8.0
HUB_ID = re.compile(r"[\w.-]+/[\w.-]+|[\w.-]+")


def shape_on_hub(repo: str) -> ModelShape:
    """A shape by Hub id. Raises ModelNotFound, ModelUnreachable or InvalidConfig."""
    repo = repo.strip()
    if not HUB_ID.fullmatch(repo):
        raise ModelNotFound(f"{repo!r:.80} is no Hub id. It looks like HuggingFaceTB/SmolLM2-135M.")
    return from_json(_config_of(repo))


def _config_of(repo: str) -> str:
    try:
        return _text(Path(hf_hub_download(repo, "config.json", etag_timeout=TIMEOUT_S, token=False)), repo)
    except GatedRepoError as error:
        raise ModelNotFound(
            f"{repo} asks for consent on its Hub page, and it is asked without your token. Paste its config.json here."
        ) from error
    except RepositoryNotFoundError as error:
        raise ModelNotFound(
            f"The Hub has no public model named {repo}. Of a private one, paste the config.json here."
        ) from error
    except LocalEntryNotFoundError as error:
        raise ModelUnreachable(
            f"The Hub does not answer, and the config of {repo} was not fetched earlier. "
            "Check the network, or paste the model's config.json here."
        ) from error
    except InvalidConfig:
        raise
    except EntryNotFoundError as error:
        raise InvalidConfig(f"{repo} has no config.json on the Hub, so its shape is not known.") from error
    except Exception as error:  # the HTTP library behind the Hub client, and so its errors, differ by version
        raise ModelUnreachable(
            f"The config of {repo} could not be fetched: {error}. Paste the model's config.json here."
        ) from error


def _text(path: Path, repo: str) -> str:
    """A file's text, its size seen before it is read."""
    if (size := path.stat().st_size) > 4 * MOST_CHARACTERS:  # four bytes a letter at most
        raise InvalidConfig(f"The config.json of {repo} has {size:,} bytes; a config is never so long.")
    try:
        return path.read_text(encoding="utf-8")
    except UnicodeDecodeError as error:
        raise InvalidConfig(f"The config.json of {repo} is no text in UTF-8.") from error
