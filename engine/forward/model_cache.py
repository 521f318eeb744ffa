"""transformers' view of our KV stores: a Cache whose layers append to, or only read, the sessions of one forward.

transformers' own caches keep one length for the whole batch; here each session has its own. What `update`
returns goes to attention: a single session gets views of its store. Several sessions get their new keys back
unchanged (attention reads each store itself), except where the model expands what is cached before attention
(MLA): then the padded whole is returned.
"""

from __future__ import annotations

from torch import Tensor
from transformers.cache_utils import Cache, CacheLayerMixin

from engine.forward.forward_pass import ForwardPass


class StoreLayer(CacheLayerMixin):  # type: ignore[no-untyped-call]
    """One layer of the stores of a forward."""

    is_sliding = False  # sliding layers keep all keys; the mask applies the window
    is_croppable = False

    def __init__(self, layer: int, forward_pass: ForwardPass) -> None:
        super().__init__()  # type: ignore[no-untyped-call]
        self.layer = layer
        self.forward_pass = forward_pass
        self.is_initialized = True

    def lazy_initialization(self, key_states: Tensor, value_states: Tensor) -> None:
        """Nothing to prepare: stores allocate when they are written."""

    def update(self, key_states: Tensor, value_states: Tensor, *_: object, **__: object) -> tuple[Tensor, Tensor]:
        """Append this layer's new keys and values, (B, G, M, D); return what attention should see."""
        forward_pass = self.forward_pass
        if not forward_pass.keeps_cache:
            return key_states, value_states
        if forward_pass.ragged is not None:
            forward_pass.ragged.append(self.layer, key_states, value_states)
            return key_states, value_states
        if not forward_pass.read_only:
            for row, store in enumerate(forward_pass.stores):
                store.append(self.layer, key_states[row], value_states[row])
        if len(forward_pass.stores) == 1:
            keys, values = forward_pass.stores[0].view(self.layer, forward_pass.past[0] + forward_pass.num_new)
            return keys.unsqueeze(0), values.unsqueeze(0)
        if forward_pass.direct:
            return key_states, value_states
        return self._padded(key_states, value_states)

    def _padded(self, key_states: Tensor, value_states: Tensor) -> tuple[Tensor, Tensor]:
        forward_pass = self.forward_pass
        longest = max(forward_pass.past) + forward_pass.num_new
        keys = key_states.new_zeros(*key_states.shape[:2], longest, key_states.shape[3])
        values = value_states.new_zeros(*value_states.shape[:2], longest, value_states.shape[3])
        for row, (store, past) in enumerate(zip(forward_pass.stores, forward_pass.past, strict=True)):
            length = past + forward_pass.num_new
            keys[row, :, :length], values[row, :, :length] = store.view(self.layer, length)
        return keys, values

    def get_mask_sizes(self, query_length: int) -> tuple[int, int]:
        return max(self.forward_pass.past) + query_length, 0

    def get_seq_length(self) -> int:
        self.forward_pass.asked_length |= self.forward_pass.in_attention
        return max(self.forward_pass.past)

    def get_max_length(self) -> int:
        return -1


class StoreCache(Cache):
    """All layers of one forward."""

    def __init__(self, forward_pass: ForwardPass, num_layers: int) -> None:
        super().__init__(layers=[StoreLayer(layer, forward_pass) for layer in range(num_layers)])
