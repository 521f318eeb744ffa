"""From a session to the link that shows it again.

A seed and settings draw the same tokens wherever the numbers are the same, so a link lists what a person
chose and never what the model drew. The numbers are the model's, so the link names it, unless it is Loupe's own: a
name that can be had anywhere as what to load, a folder or file of this machine as what the run was made with.
"""

from __future__ import annotations

from explorer.links.link import Link, Settings, digest, too_long
from explorer.workspace.recipe_json import SavedSession


def link_of(
    saved: SavedSession, model: str | None, layer: int | None, head: int | None, *, name: str | None = None
) -> Link:
    """`model` is None where Loupe's own default runs; `name` is what people call it."""
    recipe = saved.recipe
    now = Settings(recipe.sampling, recipe.seed)
    history = _history(saved)
    return Link(
        prompt=saved.prompt,
        mode=saved.mode,
        model=_shareable(model),
        model_name=None if _shareable(model) == model else name,
        settings=now,
        stop=recipe.stop,
        steps=len(recipe.chosen) - 1 if recipe.chosen else None,
        forced={step: c.token_id for step, c in enumerate(recipe.chosen) if c.forced},
        history={} if set(history.values()) <= {now} else history,
        layer=layer,
        head=head,
        fed=digest(recipe.prompt_ids) if saved.mode == "chat" and recipe.prompt_ids else None,
    )


def link_note(saved: SavedSession, model: str | None) -> str | None:
    """Why a link cannot show this session again, in words; None where it can."""
    if saved.prompt is None:
        return "This session came without its prompt's text, so a link can only carry the settings."
    if too_long(saved.prompt):
        return f"The prompt has {len(saved.prompt):,} characters, too many for a link: it carries the settings only."
    if model is not None and _shareable(model) is None:
        return (
            "The model is a file or folder on this machine, which a link cannot carry. Where another model runs, the "
            "link says so, and fills in the prompt and the settings only."
        )
    return None


def is_server_path(model: str) -> bool:
    """Whether a model's name is a folder or file of this server."""
    return model.startswith(("/", ".", "~")) or "\\" in model or model.endswith(".gguf")


def _shareable(model: str | None) -> str | None:
    """A folder or file of this server means nothing elsewhere, and its path is nobody's business."""
    return None if model is None or is_server_path(model) else model


def _history(saved: SavedSession) -> dict[int, Settings]:
    """Settings by the step they first drew."""
    history: dict[int, Settings] = {}
    before = last = None
    for step, chosen in enumerate(saved.recipe.chosen):
        if before is not None and chosen.sampling is before.sampling and chosen.seed == before.seed:
            continue  # nearly every step: a long run's link is written with each of them
        before, settings = chosen, Settings(chosen.sampling, chosen.seed)
        if settings != last:
            history[step] = last = settings
    return history
