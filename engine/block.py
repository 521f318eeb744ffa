"""What a step's residual stream went through, block by block: numbers of a replay, for people to look at."""

from __future__ import annotations

from dataclasses import dataclass

UNKNOWN_SUM = (
    "What goes into a block of this model plus what its parts put out is not what comes out of it, so the parts cannot "
    "be shown. The residual stream before and after each block can."
)


@dataclass(frozen=True, slots=True)
class Matrix:
    """A weight matrix by its name in the model: it takes `inputs` numbers and gives `outputs`, of this L2 norm.

    norm  None where it does not read what the whole MLP reads
    """

    name: str
    inputs: int
    outputs: int
    norm: float | None


@dataclass(frozen=True, slots=True)
class Heads:
    """What attention got in a layer: query heads, key-value heads, and how wide queries, keys and values are."""

    queries: int
    keys: int
    width: int
    value_width: int


@dataclass(frozen=True, slots=True, kw_only=True)
class BlockNorms:
    """One decoder layer at one step: L2 norms of what its newest token carries. None: this layer has no such part.

    entered         the residual stream before the layer
    first_norm      what the norm before attention makes of it
    query key value all heads together, as attention gets them: q and k already rotated where the layer rotates them
    attended        the heads' mixtures of cached values, side by side
    projected       what the output projection makes of them
    attention_norm  what a norm after it makes of that
    attention_added what attention added to the residual stream
    middle          the residual stream after that; None where both branches are added at once
    second_norm     what the norm before the MLP makes of it
    inner           what the MLP's last matrix reads
    mlp             what the MLP gives
    mlp_norm        what a norm after it makes of that
    mlp_added       what the MLP added to the residual stream
    left            the residual stream after the layer

    keys_read   cached positions that the layer's mask lets the newest token read
    is_rotated  whether RoPE rotates q and k here; at position 0, where that changes nothing, whether the model has RoPE
    has_experts whether the MLP is a mixture of experts
    matrices    of the MLP, in the order of their names in the model; empty with experts
    """

    entered: float
    first_norm: float | None
    query: float
    key: float
    value: float
    attended: float
    projected: float | None
    attention_norm: float | None
    attention_added: float | None
    middle: float | None
    second_norm: float | None
    inner: float | None
    mlp: float | None
    mlp_norm: float | None
    mlp_added: float | None
    left: float
    heads: Heads
    keys_read: int
    is_rotated: bool
    has_experts: bool
    matrices: tuple[Matrix, ...]


@dataclass(frozen=True, slots=True)
class Blocks:
    """The way of a step's newest token through the whole model.

    step        whose
    hidden      width of the residual stream
    norm_name   RMSNorm or LayerNorm, as the model's own class says
    layers      each layer
    final_norm  L2 norm of what the head reads; None where it could not be read
    logits      L2 norm of the row of logits
    vocabulary  how many there are
    closed      why the parts of its blocks cannot be told apart; empty where they can
    """

    step: int
    hidden: int
    norm_name: str
    layers: tuple[BlockNorms, ...]
    final_norm: float | None
    logits: float
    vocabulary: int
    closed: str
