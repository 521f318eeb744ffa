"""A worked example that is numbers alone: the textbook's 30B model on sixteen chips, with its full inputs."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class ServingExample:
    """Inputs of a step-time question, rates of one device.

    parameters, weights  how many, and the bytes they take
    kv_bytes_per_token   of one sequence; `context` is its length
    """

    name: str
    parameters: float
    weights: float
    kv_bytes_per_token: float
    context: int
    devices: int
    bandwidth: float
    peak: float
    memory: float
    batches: tuple[int, ...]
    source: str

    @property
    def kv_bytes(self) -> float:
        """Bytes of one sequence's cache."""
        return self.kv_bytes_per_token * self.context


SCALING_BOOK_30B = ServingExample(
    name="30B dense, int8 weights, on a 4×4 slice of TPU v5e",
    parameters=30e9,
    weights=30e9,
    kv_bytes_per_token=100e3,
    context=8192,
    devices=16,
    bandwidth=8.2e11,
    peak=1.97e14,
    memory=16e9,
    batches=(4, 256),
    source="How to Scale Your Model (JAX scaling book), part 7: inference",
)
