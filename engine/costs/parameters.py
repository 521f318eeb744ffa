"""How many parameters a shape has, and how many of them one token is multiplied with.

A tied embedding counts once. A token goes through a few experts of many, so a mixture has two sizes: what
must be held, and what one token meets. The row that an untied input embedding or a position table gives is
looked up, not multiplied: it is held, and left out of the products.
"""

from __future__ import annotations

from dataclasses import dataclass

from engine.costs.sizes import Sizes


@dataclass(frozen=True, slots=True)
class Parameters:
    """Parameters by where they sit.

    total                everything that must be held
    active               what one token meets: as total, but only the experts it is sent to
    embedding            the input embedding; where it is tied it is the head as well
    head                 the matrix of the head, whether tied or not
    attention_per_layer  with its biases and norms of queries and keys
    mlp_per_layer        a dense layer's MLP; 0 where all layers have experts
    expert               one expert; 0 where there are none
    always_per_expert_layer  what every token meets in the MLP of a layer with experts: router and shared experts
    norms                all norms of the hidden width, the last one too
    matmul               of `active`, what takes part in a step: without rows that are only looked up
    matrices             of `matmul`, the matrices alone: two operations each per token, exactly
    """

    total: int
    active: int
    embedding: int
    positions: int
    head: int
    attention_per_layer: int
    mlp_per_layer: int
    expert: int
    always_per_expert_layer: int
    norms: int
    matmul: int
    matrices: int


def count(shape: Sizes) -> Parameters:
    """Parameters of a shape."""
    d, experts = shape.hidden_size, shape.experts
    embedding = shape.vocab_size * d
    positions = shape.learned_positions * d
    attention_matrices, attention = _attention(shape)
    dense_matrices, dense = _mlp(shape, shape.intermediate_size, biased=shape.mlp_bias)
    norms = (shape.num_layers * shape.norms_per_layer + 1 + shape.embedding_norm) * shape.norm_vectors * d
    shared_by_all = (
        embedding * (1 if shape.tied else 2)
        + (shape.vocab_size if shape.head_bias else 0)
        + positions
        + norms
        + shape.num_layers * attention
    )
    total = active = shared_by_all + shape.num_layers * dense
    matrices = embedding + shape.num_layers * (attention_matrices + dense_matrices)
    expert = always = 0
    if experts:
        dense_layers = shape.num_layers - experts.layers
        expert_matrices, expert = _mlp(shape, experts.width, biased=experts.biased)
        always_matrices, always = _always(shape)
        total = shared_by_all + dense_layers * dense + experts.layers * (always + experts.count * expert)
        active = shared_by_all + dense_layers * dense + experts.layers * (always + experts.active * expert)
        in_expert_layers = experts.layers * (always_matrices + experts.active * expert_matrices)
        matrices = embedding + shape.num_layers * attention_matrices + dense_layers * dense_matrices + in_expert_layers
        dense = dense if dense_layers else 0
    return Parameters(
        total=total,
        active=active,
        embedding=embedding,
        positions=positions,
        head=embedding,
        attention_per_layer=attention,
        mlp_per_layer=dense,
        expert=expert,
        always_per_expert_layer=always,
        norms=norms,
        matmul=active - positions - (0 if shape.tied else embedding),
        matrices=matrices,
    )


def _attention(shape: Sizes) -> tuple[int, int]:
    """One layer's attention: its matrices, and everything."""
    d, n, latent = shape.hidden_size, shape.num_heads, shape.latent
    if latent:
        width = latent.nope + latent.rope  # of a query's head, and of a key's
        queries = d * latent.q_rank + latent.q_rank * n * width if latent.q_rank else d * n * width
        keys = d * latent.cached_width + latent.kv_rank * n * (latent.nope + latent.value)
        matrices = queries + keys + n * latent.value * d
        norms = latent.q_rank + latent.kv_rank
        biases = (latent.q_rank + latent.cached_width) * shape.qkv_bias + d * shape.output_bias
        return matrices, matrices + norms + biases
    matrices = 2 * d * n * shape.head_dim + 2 * d * shape.num_kv_heads * shape.head_dim
    biases = (n + 2 * shape.num_kv_heads) * shape.head_dim * shape.qkv_bias + d * shape.output_bias
    return matrices, matrices + biases + shape.qk_norm + n * shape.sinks


def _mlp(shape: Sizes, width: int, *, biased: bool) -> tuple[int, int]:
    """One MLP or expert of a width: its matrices, and everything."""
    matrices = shape.mlp_matrices * shape.hidden_size * width
    biases = (shape.mlp_matrices - 1) * width + shape.hidden_size if biased else 0
    return matrices, matrices + biases


def _always(shape: Sizes) -> tuple[int, int]:
    """What every token meets in the MLP of a layer with experts: matrices, and everything."""
    experts = shape.experts
    assert experts is not None
    rows = experts.count * experts.router + experts.shared_gate
    shared, with_biases = _mlp(shape, experts.shared_width or experts.width, biased=experts.biased)
    matrices = rows * shape.hidden_size + experts.shared * shared
    return matrices, matrices + experts.shared * (with_biases - shared) + experts.count * experts.router_bias
