"""The cache of one sequence: growth, views, cutting and copying."""

from __future__ import annotations

import pytest
import torch

from engine.forward.kv_store import FIRST_CAPACITY, KVStore


def filled(num_tokens: int, *, num_layers: int = 2, first: float = 0.0) -> KVStore:
    """One key head of width 4; token t's keys are all first + t, its values the negative of that."""
    store = KVStore(num_layers)
    append(store, num_tokens, first)
    return store


def append(store: KVStore, num_tokens: int, first: float) -> None:
    numbers = first + torch.arange(num_tokens, dtype=torch.float32)
    keys = numbers[None, :, None].expand(1, num_tokens, 4)
    for layer in range(store.num_layers):
        store.append(layer, keys, -keys)
    store.advance(num_tokens)


def tokens(store: KVStore) -> list[float]:
    return store.view(0, store.length)[0][0, :, 0].tolist()


def test_three_tokens_less_five_is_an_error_less_none_is_three_and_less_three_is_none():
    store = filled(3)
    store.truncate(3)
    assert tokens(store) == [0, 1, 2]
    store.truncate(0)
    assert store.length == 0
    assert store.live_bytes == 0
    with pytest.raises(AssertionError, match="cannot cut a cache of 0 tokens to -2"):
        store.truncate(-2)


def test_after_a_cut_new_tokens_replace_the_old_and_no_stale_key_is_left():
    store = filled(5)
    store.truncate(2)
    append(store, 2, first=10.0)
    assert tokens(store) == [0, 1, 10, 11]


def test_growth_by_doubling_keeps_every_token():
    store = filled(FIRST_CAPACITY)
    append(store, 1, first=500.0)
    assert tokens(store) == [*range(FIRST_CAPACITY), 500]
    assert store.reserved_bytes == 2 * store.num_layers * (2 * FIRST_CAPACITY) * 4 * 4  # k and v, width 4, fp32


def test_bytes_are_those_of_the_tokens_held_not_of_the_room_reserved():
    store = filled(3)
    assert store.live_bytes == 2 * 2 * 3 * 4 * 4  # k and v, 2 layers, 3 tokens, width 4, 4 bytes
    assert store.bytes_at(1) == 2 * 2 * 1 * 4 * 4


def test_a_view_of_an_earlier_length_shares_storage_with_the_whole():
    store = filled(4)
    early, whole = store.view(0, 2)[0], store.view(0, 4)[0]
    assert early.data_ptr() == whole.data_ptr()
    assert early.shape[1] == 2


def test_a_fork_does_not_see_what_its_origin_appends_or_overwrites():
    store = filled(4)
    branch = store.fork(2)
    store.truncate(0)
    append(store, 4, first=90.0)
    assert tokens(branch) == [0, 1]
    append(branch, 1, first=7.0)
    assert tokens(branch) == [0, 1, 7]
    assert tokens(store) == [90, 91, 92, 93]


def test_a_forward_that_fails_half_way_leaves_the_cache_as_it_was():
    store = filled(2)
    store.append(0, torch.ones(1, 1, 4), torch.ones(1, 1, 4))  # layer 1 never comes
    assert tokens(store) == [0, 1]
    append(store, 1, first=5.0)
    assert tokens(store) == [0, 1, 5]


def test_norms_are_those_of_the_live_keys_and_values():
    store = filled(3, first=3.0)
    norms = store.norms(1, 3)  # (2, L, G, M)
    assert norms.shape == (2, 2, 1, 2)
    assert norms[0, 0, 0].tolist() == [8.0, 10.0]  # four fours, four fives
    assert norms[1, 1, 0].tolist() == [8.0, 10.0]


@pytest.mark.parametrize("alike", [True, False])
def test_layers_in_one_block_and_layers_apart_hold_and_cost_the_same(alike):
    store = KVStore(2, alike=alike)
    append(store, FIRST_CAPACITY - 1, first=0.0)
    append(store, 3, first=70.0)
    branch = store.fork(5)
    store.clear()
    assert tokens(branch) == [0, 1, 2, 3, 4]
    assert branch.live_bytes == 2 * 2 * 5 * 4 * 4  # k and v, 2 layers, 5 tokens, width 4, 4 bytes
    assert branch.reserved_bytes == 2 * 2 * FIRST_CAPACITY * 4 * 4
    assert store.reserved_bytes == 0


def test_a_block_with_room_for_one_token_more_keeps_those_held():
    store = filled(FIRST_CAPACITY)
    block = store.block(FIRST_CAPACITY + 1)  # (L, 2, G, C, D)
    assert block.shape == (2, 2, 1, 2 * FIRST_CAPACITY, 4)
    assert block[1, 1, 0, :FIRST_CAPACITY, 0].tolist() == [-t for t in range(FIRST_CAPACITY)]
    assert tokens(store) == list(range(FIRST_CAPACITY))


@pytest.mark.parametrize("alike", [True, False])
def test_the_norms_of_a_long_16_bit_cache_are_exact_and_never_widen_the_whole_of_it(monkeypatch, alike):
    store = KVStore(3, alike=alike)
    torch.manual_seed(0)
    for layer in range(3):
        store.append(layer, *(torch.randn(2, 3_000, 64).bfloat16() for _ in range(2)))
    store.advance(3_000)
    widen, largest = torch.Tensor.float, []
    monkeypatch.setattr(torch.Tensor, "float", lambda self: largest.append(self.numel()) or widen(self))
    norms = store.norms(0, 3_000)
    monkeypatch.undo()
    assert len(largest) > 1 and max(largest) <= 1 << 20 < 3 * 2 * 2 * 3_000 * 64
    for layer in range(3):
        for kind, held in enumerate(store.view(layer, 3_000)):
            assert torch.equal(norms[kind, layer], widen(held).norm(dim=-1))
    assert torch.equal(store.norms(2_999, 3_000), norms[..., 2_999:])
