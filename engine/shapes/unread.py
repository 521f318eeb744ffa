"""Fields of a config that nobody read and that look as if they said what is cached: by their name or by their shape.

A new architecture announces itself by a field. Read past it, and its cache comes out as another model's, to the
byte. So every field is accounted for: read, known to be about something else, or named here.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping

CACHE_WORD = re.compile(
    """
    attention|attn|blocks?|cached?|chunk(ed)?|compress(ed|ion)?|conv|cycles|every|freq|full|global|groups|heads?|hybrid
    |idxs?|index(er)?|indices|interval|kv|lambda|latent|layers?|linear|local|loops?|lora|mamba|mem|memory|mla|offset
    |nsa|csa|hca|dsa|cla|kda|gdn|mqa|gqa|retention|passes|pattern|period|rank|recurren(t|ce)|reuse|shared?|sharing|skip|sliding|sparse|ssm|states?|stride|swa|types?
    |value|windows?
    """,
    re.VERBOSE,
)
ELSEWHERE = re.compile(
    r"""
    _?(attn|experts)_implementation.* | add_cross_attention | cross_attention_hidden_size | is_decoder | use_cache
    | transformers_version | model_type | auto_map | architectures | quantization_config | (torch_)?dtype
    | _name_or_path
    | .*_token_(id|index)s? | (id2label|label2id|problem_type|task_specific_params|return_dict|output_.*) | tie_.*
    | .*drop(out)?(_.*)? | .*pdrop | .*_eps(ilon)? | .*norm.* | .*init.* | .*_std(_.*)? | .*bias.*
    | .*rope.* | .*rotary.* | (original_)?max_.*position.* | .*alibi.* | position_.* | .*scal(e|ing).* | .*multiplier.*
    | .*softcap.* | .*soft_cap.* | .*logit.* | .*_act(ivation)?(_.*)? | activation.* | .*softmax.* | attention_sink.*
    | (moe|mlp|ffn|ff|expert|router|routed|aux|topk|top_k|mtp|dense|zero_expert|layers_num_experts)_.*
    | (.*_)?(num_)?(local_|shared_|routed_)*experts?(_.*)? | first_k_dense_replace | decoder_sparse_step | n_group
    | topk_group | norm_topk_prob | num_nextn_predict_layers | ep_size | seq_aux | pretraining_tp | .*_method
    | (vision|audio|image|video|img|mm|summary|classifier|vocab|type_vocab|projector)_.* | chunk_size_feed_forward
    | (reorder_and_upcast|scale)_attn.* | scale_attention_.* | attn_temperature_tuning | attn_scale | query_pre_attn_.*
    | use_flash_attn | flash_attn.* | unsloth.* | .*gradient_checkpointing | .*(image|video|audio)_token.*
    | (bos|eos|pad|sep|unk|mask|forced)_.* | block_multiple_of | block_ffn_.* | block_auto_.* | block_ff_dim
    | cache_implementation | attn_output_gate | mla_use_nope | block_(dim|use_.*)
    | kv_lower_bound | gating | use_bidirectional_attention | .*_per_layer_input | qk_head_dim | (altup|laurel)_.*
    | (.*_)?(intermediate_size|ffn_dim|n_inner)(_mlp)? | num_dense_layers | index_(topk|n_heads) | conv_L_cache
    """,
    re.VERBOSE,
)
STATES = re.compile(
    r"mamba.*|linear_.*|.*conv.*|ssm_.*|lru_.*|expand|n_groups|chunk_size|block_size|time_step.*|.*attn_(alpha|beta)_.*"
    r"|use_mamba.*|use_associative_scan|.*_state_size|state_size|residual_in_fp32"
)  # of layers with a state in place of a cache: its size, which does not grow


def suspects(values: Mapping[str, object], seen: Iterable[str], layers: int, *, has_states: bool = False) -> list[str]:
    """Names of the fields that nobody read and that may say what is cached, in the config's own order.

    layers      how many there are: a list as long, or of their numbers, is about them
    has_states  whether the type is known to have layers with a state, whose sizes are about something else
    """
    read = set(seen)
    return [
        name
        for name, value in values.items()
        if name not in read
        and _says_something(value)
        and not ELSEWHERE.fullmatch(name)
        and not (has_states and STATES.fullmatch(name))
        and (_named_so(name) or _shaped_so(value, layers))
    ]


def _says_something(value: object) -> bool:
    """A field that is null, false, 0 or empty switches nothing on."""
    return bool(value)


def _named_so(name: str) -> bool:
    words = re.findall(r"[a-z]+", re.sub(r"(?<=[a-z])(?=[A-Z])", "_", name[:200]).lower())
    return any(CACHE_WORD.fullmatch(word) for word in words)


def _shaped_so(value: object, layers: int) -> bool:
    if isinstance(value, Mapping):
        return any(_says_something(one) and _named_so(str(name)) for name, one in value.items())
    if isinstance(value, str):
        return len(value) == layers > 3 and len(set(value)) < len(value) / 2  # a letter a layer
    if not isinstance(value, (list, tuple)) or not value:
        return False
    numbers = [one for one in value if type(one) is int]
    are_layers = len(numbers) == len(value) == len(set(numbers)) and all(0 <= one < layers for one in numbers)
    return len(value) == layers > 1 or (are_layers and len(numbers) > 1)
