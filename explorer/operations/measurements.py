"""Operations that measure: this machine, and the layers of one step. They look; nothing moves.

And what the page needs to stand each step on its floor: the bytes and operations of the step by the cost model, to
be divided by what the machine was measured to do.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from engine.costs.bytes import streamed_parameters
from engine.costs.flops import decode_flops, prefill_flops
from explorer.engines import bridge
from explorer.hosting.limits import NotHere
from explorer.live.frame import Json, number
from explorer.operations.operation import Args, Running, active, plain, step_of

if TYPE_CHECKING:
    from engine.facts import ModelInfo
    from engine.measure.machine_rates import MachineRates
    from engine.records import StepRecord
    from explorer.workspace.workspace import Workspace


def measure_machine(workspace: Workspace, args: Args) -> Running:
    """How fast this machine is, measured now. Not where it would slow a class."""
    if workspace.hosting.is_hosted:
        raise NotHere("This Loupe is shared: measuring the machine would slow everybody down, so it is not done here.")
    rates: MachineRates = yield workspace.engine.measure_machine(again=True)
    return plain(machine=machine_json(rates))


def layer_times(workspace: Workspace, args: Args) -> Running:
    """One step's forward, layer by layer."""
    branch = active(workspace)
    step = step_of(branch, args)
    workspace.activity.session, workspace.activity.words = branch.session, ("replaying the step", 0, 0)
    found: Any = yield bridge.layer_times(branch.session, step)
    layers: list[Json] = [number(ms) for ms in found.layers_ms]
    return plain(
        step=step, before=number(found.before_ms), layers=layers, head=number(found.head_ms), replays=found.replays
    )


def machine_json(rates: MachineRates | None) -> dict[str, Json] | None:
    """What the machine was measured to do; None: not measured yet."""
    if rates is None:
        return None
    read, multiply = rates.gemv_bytes_per_s, rates.gemm_flops_per_s
    return {
        "bytes_per_s": number(read.best),
        "bytes_per_s_median": number(read.median),
        "flops_per_s": number(multiply.best),
        "flops_per_s_median": number(multiply.median),
        "dtype": rates.dtype,
        "threads": rates.threads,
        "at": rates.at,
        "method": rates.method,
    }


def floor_json(record: StepRecord, info: ModelInfo) -> dict[str, Json] | None:
    """What a step's forward has to move and to do at least: the weights, and this session's own cache.

    Sessions that share a forward read the weights once; each one's floor still has all of them. Of a prompt only the
    tokens that were run count: None where all of it was copied from a shared one, which takes no forward. None as well
    for an architecture of which only the cache is known.
    """
    fed = len(record.input_ids) - record.reused_tokens
    if not fed or not info.shape.knows_weights:
        return None
    size = info.weight_bytes / info.parameters
    weights = streamed_parameters(info.shape, tokens=fed) * size
    prefill = record.phase == "prefill"
    flops = (
        prefill_flops(info.shape, record.kv_len, cached=record.reused_tokens, last_logits_only=True)
        if prefill
        else decode_flops(info.shape, record.kv_len)
    )
    return {"weights": round(weights), "cache": record.kv_bytes, "flops": flops}
