"""Shapes of real models: from any transformers config as plain JSON, and by name.

`parse` is the door for text and `read` reads a config once; `from_config` and `from_json` give the shape alone.
`NAMED` holds shapes that ship, each with its source.
A Hub id is `engine.models.hub_shape`, a loaded model `engine.models.loaded_shape`: those two need transformers.
"""

from engine.shapes.config import Reading, from_config, from_json, read
from engine.shapes.config_text import parse
from engine.shapes.named import NAMED, NamedShape

__all__ = ["NAMED", "NamedShape", "Reading", "from_config", "from_json", "parse", "read"]
