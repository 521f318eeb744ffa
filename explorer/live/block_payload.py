"""The blocks of a step as the JSON the browser gets: all layers at once, so that choosing one asks for nothing."""

from __future__ import annotations

from dataclasses import fields

from engine.block import BlockNorms, Blocks
from engine.costs.sizes import Experts
from explorer.live.frame import Json, number

_NORMS = tuple(field.name for field in fields(BlockNorms) if str(field.type).startswith("float"))


def blocks_json(blocks: Blocks, experts: Experts | None) -> dict[str, Json]:
    """All layers of a step; `experts` are the model's, where it has any."""
    return {
        "step": blocks.step,
        "hidden": blocks.hidden,
        "norm_name": blocks.norm_name,
        "layers": [_layer_json(layer) for layer in blocks.layers],
        "final_norm": number(blocks.final_norm),
        "logits": number(blocks.logits),
        "vocabulary": blocks.vocabulary,
        "experts": None if experts is None else {"count": experts.count, "active": experts.active},
        "closed": blocks.closed,
    }


def _short(value: float | None) -> float | None:
    """Six digits: what a float32 holds, and half of what a float64 would write."""
    return None if value is None else number(float(f"{value:.6g}"))


def _layer_json(layer: BlockNorms) -> dict[str, Json]:
    heads = layer.heads
    matrices: list[Json] = [[m.name, m.inputs, m.outputs, _short(m.norm)] for m in layer.matrices]
    return {
        **{name: _short(getattr(layer, name)) for name in _NORMS},
        "heads": [heads.queries, heads.keys, heads.width, heads.value_width],
        "keys_read": layer.keys_read,
        "is_rotated": layer.is_rotated,
        "has_experts": layer.has_experts,
        "matrices": matrices,
    }
