"""Change a token in a copy of the live session, prefill the copy, and see which cached keys and values moved.

A key is a product of a layer's input with a matrix. In layer 0 that input is the token's own embedding, so the key
depends on the token and its position alone. In every layer above, the input has read the tokens before it, and so
have the key and the value. The session, its cache and the prompts that sessions share are only read.
"""

from __future__ import annotations

from collections.abc import Generator
from concurrent.futures import Future

import torch
from torch import Tensor

from engine.decode.prefilling import feed
from engine.decode.session_state import SessionState
from engine.errors import UnknownToken
from engine.forward.kv_store import KVStore
from engine.forward.model_runner import ModelRunner
from engine.progress import OnProgress
from engine.session import DecodeSession
from engine.studies.key_records import KeyChange

MOST_POSITIONS = 512  # two copies of the cache live for a moment; the picture has no more columns than that


def change_first_token(
    session: DecodeSession, token_id: int, report: OnProgress, *, most: int = MOST_POSITIONS
) -> Future[KeyChange]:
    """What putting `token_id` first does to the keys and values of the first `most` tokens of `session`.

    report  called between forwards with tokens fed and tokens in all; what it raises ends the work
    Raises UnknownToken where there is no such token, or it is the one that stands there.
    """
    chunk, runner = session.engine.config.prefill_chunk, session.engine.stepper.runner
    return session.run(lambda state: _changed(runner, state, token_id, chunk, report, most))


def _changed(
    runner: ModelRunner, state: SessionState, token_id: int, chunk: int, report: OnProgress, most: int
) -> Generator[None, None, KeyChange]:
    state.require_step(0)
    ids = state.token_ids[: min(state.store.length, most)]
    vocabulary = int(runner.model.config.get_text_config().vocab_size)
    if not 0 <= token_id < vocabulary:
        raise UnknownToken(f"There is no token {token_id}: ids go from 0 to {vocabulary - 1:,}.")
    if token_id == ids[0]:
        raise UnknownToken(f"Token {token_id} stands first already. Choose another one.")
    total = 2 * len(ids)
    same = yield from feed(runner, runner.scratch_store(), ids, chunk, lambda done, _: report(done, total))
    yield
    other = yield from feed(
        runner, runner.scratch_store(), (token_id, *ids[1:]), chunk, lambda done, _: report(len(ids) + done, total)
    )
    yield
    moved, bits = _compared(same.store, other.store, len(ids))
    rounding, _ = _compared(state.store, same.store, len(ids))
    return KeyChange(0, ids[0], token_id, ids, moved.numpy(), bits.numpy(), rounding.numpy())


def _compared(before: KVStore, after: KVStore, length: int) -> tuple[Tensor, Tensor]:
    """Relative change (2, L, N) of keys (0) and values (1), and where not a bit differs."""
    changes, bits = [], []
    for layer in range(before.num_layers):
        pairs = list(zip(before.view(layer, length), after.view(layer, length), strict=True))
        changes.append(torch.stack([_relative(a, b) for a, b in pairs]))  # (2, N)
        bits.append(torch.stack([(a == b).all(-1).all(0) for a, b in pairs]))  # (2, N)
    return torch.stack(changes, dim=1).cpu(), torch.stack(bits, dim=1).cpu()


def _relative(before: Tensor, after: Tensor) -> Tensor:
    """|after - before| / |before| over all heads: (G, N, D), (G, N, D) -> (N) float32."""
    a, b = before.double(), after.double()
    change = (b - a).pow(2).sum((0, 2)).sqrt() / a.pow(2).sum((0, 2)).sqrt().clamp_min(1e-30)
    return change.float()
