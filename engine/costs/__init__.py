"""What a model costs, by formula: parameters, cache, arithmetic, bytes moved and the time they take at least.

Pure functions of plain numbers and one frozen `ModelShape`: no torch, no weights, microseconds for any size.
Bytes are bytes, times are seconds, rates are per second. What was measured is held against these.
"""

from engine.costs.shape import ModelShape
from engine.costs.sizes import CachedLayers, Experts, Latent, Window

__all__ = ["CachedLayers", "Experts", "Latent", "ModelShape", "Window"]
