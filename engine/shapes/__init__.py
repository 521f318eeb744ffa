"""Shapes of real models: from any transformers config as plain JSON, and by name.

`from_config` reads a mapping, `from_json` pasted text, `NAMED` holds shapes that ship, each with its source.
A Hub id is `engine.models.hub_shape`, a loaded model `engine.models.loaded_shape`: those two need transformers.
"""

from engine.shapes.config import from_config, from_json
from engine.shapes.named import NAMED, NamedShape

__all__ = ["NAMED", "NamedShape", "from_config", "from_json"]
