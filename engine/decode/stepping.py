"""From a forward to a record: sample from the last row, check the stop rules, write it down.

The order within a step is fixed: forward, stages, draw, stop rules, record. A step that fails at any of
them leaves cache, history and recipe as they were.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from torch import Tensor

from engine.config import ChosenToken
from engine.decode.faults import as_loupe_error
from engine.decode.sampling import Sampled, penalised_ends, sample
from engine.decode.session_state import SessionState
from engine.decode.stopping import StopState, check_stops, split_held
from engine.errors import LoupeError, SessionFinished
from engine.facts import ModelInfo
from engine.forward.capture import Capture
from engine.forward.model_runner import Feed, ModelRunner
from engine.forward.prefix_cache import PrefixCache
from engine.measure.clocks import device_allocated_bytes, now_ms, process_bytes
from engine.records import DrawMode, FinishReason, MemoryUse, StepRecord, StepTiming, StopCheck
from engine.text.tokenizer import Tokenizer


@dataclass(frozen=True, slots=True)
class ForwardFacts:
    """What a record says of the forward it came from.

    asked_ms, started_ms  on the clock of measure.now_ms; asked_ms is None where the step was not run but rebuilt
    reused_tokens         of input_ids, those whose keys and values were copied from another session's prefill
    """

    input_ids: tuple[int, ...]
    logit_rows: int
    batch_size: int
    asked_ms: float | None
    started_ms: float
    forward_ms: float
    reused_tokens: int = 0


@dataclass(frozen=True, slots=True)
class Verdict:
    """Whether decoding goes on, and the generated text as it may be shown; see StepRecord for the fields."""

    stops: tuple[StopCheck, ...]
    finish_reason: FinishReason | None
    text: str
    held: str
    pending: bytes


class Stepper:
    """Turns forwards into records, on the engine thread."""

    def __init__(
        self,
        runner: ModelRunner,
        tokenizer: Tokenizer,
        info: ModelInfo,
        *,
        prefixes: PrefixCache | None = None,
        most_kv_bytes: int = 0,
    ) -> None:
        self.runner = runner
        self.prefixes = prefixes or PrefixCache(0)
        self.most_kv_bytes = most_kv_bytes  # of one session; 0 is no limit
        self.tokenizer = tokenizer
        self.info = info

    def decode(self, batch: Sequence[SessionState], asked_ms: Sequence[float]) -> list[StepRecord | LoupeError]:
        """One token for every state of `batch`, in one forward. A failure of one reaches that one alone."""
        started = now_ms()
        feeds = [Feed(s.store, s.token_ids[-1:]) for s in batch]
        result = self.runner.forward(feeds)
        outcomes: list[StepRecord | LoupeError] = []
        for state, feed, row, asked in zip(batch, feeds, result.rows, asked_ms, strict=True):
            facts = ForwardFacts(feed.token_ids, 1, len(batch), asked, started, result.forward_ms)
            try:
                outcomes.append(self.record(state, Capture(row.logits[-1], row.queries), facts))
            except Exception as error:
                state.drop_unrecorded()
                outcomes.append(as_loupe_error(error))
        return outcomes

    def record(
        self, state: SessionState, row: Capture, facts: ForwardFacts, recalled: ChosenToken | None = None
    ) -> StepRecord:
        """Draw from the row after everything in the cache, and append token, record and capture.

        `recalled` is the token a recipe has for this step: it is the truth, should rounding ever draw otherwise.
        """
        step, began = len(state.records), now_ms()
        recalled_id = None if recalled is None else recalled.token_id
        sampled = sample(row.logits, state.token_ids, state.sampling, seed=state.seed, step=step, forced=recalled_id)
        ends = penalised_ends(row.logits, state.prompt_ids, state.generated_ids, state.sampling, self.info.end_ids)
        if recalled is not None and not recalled.forced:
            mode: DrawMode = "greedy" if recalled.sampling.is_greedy else "inverse_cdf"
            sampled = replace(sampled, draw=replace(sampled.draw, mode=mode))
        state.chosen.append(recalled or ChosenToken(sampled.draw.token_id, False, state.sampling, state.seed))
        kv_len = state.length_at(step)
        start = kv_len - len(facts.input_ids)
        if row.queries:
            state.ring.put(step, row)
        norms = state.store.norms(start, kv_len).numpy()
        kv_bytes = state.store.bytes_at(kv_len)
        verdict = self.verdict(state, kv_bytes, _end_probability(sampled, self.info.end_ids))
        record = StepRecord(
            index=step,
            input_ids=facts.input_ids,
            positions=tuple(range(start, kv_len)),
            emitted_ids=(sampled.draw.token_id,),
            kv_len=kv_len,
            kv_bytes=kv_bytes,
            kv_norms=norms,
            candidates=sampled.candidates,
            stages=sampled.stages,
            draw=sampled.draw,
            sampling=state.sampling,
            stops=verdict.stops,
            finish_reason=verdict.finish_reason,
            text=verdict.text,
            held=verdict.held,
            pending=verdict.pending,
            timing=_timing(facts, began),
            memory=self.memory(state, kv_len),
            logit_rows=facts.logit_rows,
            batch_size=facts.batch_size,
            reused_tokens=facts.reused_tokens,
            rebuilt_tokens=state.rebuilt_tokens,
            recovered_tokens=state.recovered_tokens,
            penalised_ends=ends,
        )
        state.records.append(record)
        state.rebuilt_tokens = state.recovered_tokens = 0
        return record

    def redraw(self, state: SessionState, logits: Tensor, forced: int) -> StepRecord:
        """Put `forced` in place of the newest token. It is not in the cache yet, so nothing else changes."""
        last = state.records[-1]
        context = state.token_ids[:-1]
        then = state.chosen[-1]  # the draw stays on record as it was made, whatever the settings are by now
        draw = sample(logits, context, then.sampling, seed=then.seed, step=last.index, forced=forced).draw
        state.chosen[-1] = replace(then, token_id=forced, forced=True)
        state.stopped = None
        state.records[-1] = replace(last, draw=draw, emitted_ids=(forced,))
        return self.recheck(state)

    def recheck(self, state: SessionState) -> StepRecord:
        """Check the stop rules of the newest step again, after a change of rules or of its token."""
        last = state.records[-1]
        verdict = self.verdict(state, last.kv_bytes)
        state.records[-1] = replace(
            last,
            stops=verdict.stops,
            finish_reason=verdict.finish_reason,
            text=verdict.text,
            held=verdict.held,
            pending=verdict.pending,
        )
        return state.records[-1]

    def require_unfinished(self, state: SessionState) -> None:
        """Raise where no decode step can be taken: no prompt yet, or a stop rule says it is over."""
        last = state.require_step(len(state.records) - 1)
        verdict = self.verdict(state, last.kv_bytes)
        if verdict.finish_reason is not None:
            fired = next(check for check in verdict.stops if check.fired)
            raise SessionFinished(
                f"Decoding ended after step {last.index}: {fired.label} ({fired.state}). "
                "Rewind, force another token, or change the stop rules to go on."
            )

    def verdict(self, state: SessionState, kv_bytes: int, end_probability: float | None = None) -> Verdict:
        """Every stop rule against the tokens chosen so far, and the text that may be shown."""
        ids = state.generated_ids
        joined = self.tokenizer.join(ids)
        checked = len(self.tokenizer.join(ids[:-1]).text)
        seen = StopState(
            generated_ids=ids,
            text=joined.text,
            checked=checked,
            seq_len=len(state.prompt_ids) + len(ids),
            kv_bytes=kv_bytes,
            kv_bytes_per_token=self.info.kv_bytes_per_token,
            end_probability=end_probability,
            user_stop=state.stopped == "user",
            disconnected=state.stopped == "disconnect",
        )
        rules, info = state.stop, self.info
        limit = info.limit_for(len(state.prompt_ids))
        stops, reason = check_stops(seen, rules, end_ids=info.end_ids, context_limit=limit)
        shown, held = split_held(joined.text, rules.stop_strings, checked=checked, finished=reason is not None)
        return Verdict(stops, reason, shown, held, joined.pending)

    def memory(self, state: SessionState, kv_len: int) -> MemoryUse:
        """The bytes of this moment."""
        store = state.store
        return MemoryUse(
            weight_bytes=self.info.weight_bytes,
            kv_live_bytes=store.bytes_at(kv_len),
            kv_reserved_bytes=store.reserved_bytes,
            kv_formula_bytes=kv_len * self.info.kv_bytes_per_token,
            capture_bytes=state.ring.num_bytes,
            process_bytes=process_bytes(),
            device_allocated_bytes=device_allocated_bytes(self.runner.device),
        )


def _timing(facts: ForwardFacts, began_ms: float) -> StepTiming | None:
    """Times up to now; this session's sampling began at `began_ms`, after that of others in the batch."""
    if facts.asked_ms is None:
        return None
    end = now_ms()
    return StepTiming(facts.started_ms - facts.asked_ms, facts.forward_ms, end - began_ms, end - facts.asked_ms)


def _end_probability(sampled: Sampled, end_ids: Sequence[int]) -> float | None:
    """Final probability of all end ids together; None where one is not among the candidates that carry theirs."""
    shown = sampled.candidates.ids[: sampled.stages[-1].probs.size].tolist()
    if not end_ids or any(i not in shown for i in end_ids):
        return None
    return float(sum(sampled.stages[-1].probs[shown.index(i)] for i in end_ids))
