"""From a forward to a record: sample from the last row, check the stop rules, write it down.

The order within a step is fixed: forward, stages, draw, stop rules, record. A step that fails at any of
them leaves cache, history and recipe as they were.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import torch
from torch import Tensor

from engine.config import ChosenToken
from engine.decode.sampling import penalised_ends, sample
from engine.decode.session_state import SessionState
from engine.decode.stopping import StopState, check_stops, split_held
from engine.errors import NumericalFailure, SessionFinished
from engine.facts import ModelInfo
from engine.forward.capture import Capture
from engine.forward.model_runner import Feed, ModelRunner
from engine.forward.prefix_cache import PrefixCache
from engine.measure.clocks import device_allocated_bytes, now_ms, process_bytes
from engine.records import Candidates, DrawMode, FinishReason, MemoryUse, Stage, StepRecord, StepTiming, StopCheck
from engine.text.tokenizer import Tokenizer
from engine.tokens import JoinedText


@dataclass(frozen=True, slots=True)
class ProcessMemory:
    """Bytes of this process and of its device; None where nobody says."""

    resident: int | None
    on_device: int | None

    @classmethod
    def now(cls, device: torch.device) -> ProcessMemory:
        """As the system has it."""
        return cls(process_bytes(), device_allocated_bytes(device))


@dataclass(frozen=True, slots=True)
class ForwardFacts:
    """What a record says of the forward it came from.

    asked_ms       on the clock of measure.now_ms; None where the step was not run but rebuilt
    own_ms         spent on this session before its sampling: its forwards, shared or not, and the copying around them
    forward_ms     of that, the model's part
    reused_tokens  of input_ids, those whose keys and values were copied from another session's prefill
    forwards       how many forwards that took: a long prompt takes several
    process        what the system says of this process, once for all who share a forward; None: ask it
    """

    input_ids: tuple[int, ...]
    logit_rows: int
    batch_size: int
    asked_ms: float | None
    own_ms: float
    forward_ms: float
    reused_tokens: int = 0
    forwards: int = 1
    process: ProcessMemory | None = None


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

    def decode(self, batch: Sequence[SessionState], asked_ms: Sequence[float]) -> list[StepRecord | Exception]:
        """One token for every state of `batch`, in one forward. A failure of one reaches that one alone."""
        started = now_ms()
        feeds = [Feed(s.store, (s.newest_id,), s.watched) for s in batch]
        result = self.runner.forward(feeds)
        process = ProcessMemory.now(self.runner.device)
        own = now_ms() - started
        outcomes: list[StepRecord | Exception] = []
        for state, feed, row, asked in zip(batch, feeds, result.rows, asked_ms, strict=True):
            facts = ForwardFacts(feed.token_ids, 1, len(batch), asked, own, result.forward_ms, process=process)
            try:
                outcomes.append(self.record(state, Capture(row.logits[-1], row.queries, row.attention), facts))
            except Exception as error:
                state.drop_unrecorded()
                if isinstance(error, NumericalFailure):
                    state.stopped = "nan"  # no token can follow the newest one, and its record says so
                    self.recheck(state)
                outcomes.append(error)
        return outcomes

    def record(
        self, state: SessionState, row: Capture, facts: ForwardFacts, recalled: ChosenToken | None = None
    ) -> StepRecord:
        """Draw from the row after everything in the cache, and append token, record and capture.

        `recalled` is the token a recipe has for this step: it is the truth, should rounding ever draw otherwise.
        """
        step = len(state.records)
        if state.watched and facts.asked_ms is not None:
            facts, row = self._with_attention(state, facts, row)
        began = now_ms()
        context, recalled_id = state.token_ids, None if recalled is None else recalled.token_id
        sampled = sample(row.logits, context, state.sampling, seed=state.seed, step=step, forced=recalled_id)
        generated = context[len(state.prompt_ids) :]
        ends = penalised_ends(row.logits, state.prompt_ids, generated, state.sampling, self.info.end_ids)
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
        verdict = self.verdict(state, kv_bytes, _end_probability(sampled.candidates, sampled.stages, self.info.end_ids))
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
            memory=self.memory(state, kv_len, kv_bytes, facts.process),
            logit_rows=facts.logit_rows,
            batch_size=facts.batch_size,
            forwards=facts.forwards,
            reused_tokens=facts.reused_tokens,
            rebuilt_tokens=state.rebuilt_tokens,
            recovered_tokens=state.recovered_tokens,
            penalised_ends=ends,
        )
        state.records.append(record)
        state.rebuilt_tokens = state.recovered_tokens = 0
        return record

    def _with_attention(self, state: SessionState, facts: ForwardFacts, row: Capture) -> tuple[ForwardFacts, Capture]:
        """The row with its attention where that needs no forward; the time it takes is this session's own."""
        began, found = now_ms(), row.attention
        if found is None:
            found = self.runner.rows_of(state.store, row.queries, state.store.length)
        if found is not None:
            found.setflags(write=False)  # any thread may read it
        return replace(facts, own_ms=facts.own_ms + now_ms() - began), replace(row, attention=found)

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

    def rewind(self, state: SessionState, step: int) -> None:
        """Keep steps 0 to `step`, whose stop rules are those in force now."""
        state.truncate(step)
        self.recheck(state)

    def fork(self, state: SessionState, step: int) -> SessionState:
        """An independent copy of steps 0 to `step`, under the stop rules in force now."""
        copy = state.fork(step)
        self.recheck(copy)
        return copy

    def recheck(self, state: SessionState) -> StepRecord:
        """Check the stop rules of the newest step again, after a change of rules or of its token."""
        last = state.records[-1]
        verdict = self.verdict(state, last.kv_bytes, _end_probability(last.candidates, last.stages, self.info.end_ids))
        said = {name: getattr(verdict, name) for name in ("stops", "finish_reason", "text", "held", "pending")}
        if any(getattr(last, name) != value for name, value in said.items()):  # else readers keep the one they have
            state.records[-1] = replace(last, **said)
        return state.records[-1]

    def require_unfinished(self, state: SessionState) -> None:
        """Raise where no decode step can be taken: no prompt yet, or a stop rule says it is over."""
        last = state.require_step(len(state.records) - 1)
        if last.finish_reason is not None:
            fired = next(check for check in last.stops if check.fired)
            raise SessionFinished(
                f"Decoding ended after step {last.index}: {fired.label} ({fired.state}). "
                "Rewind, force another token, or change the stop rules to go on."
            )

    def verdict(self, state: SessionState, kv_bytes: int, end_probability: float | None) -> Verdict:
        """Every stop rule against the tokens chosen so far, and the text that may be shown."""
        ids = state.generated_ids
        before = _text_before(state)
        joined = self.tokenizer.joined(before, ids[-1])
        checked = len(before.text)
        seen = StopState(
            generated_ids=ids,
            text=joined.text,
            checked=checked,
            seq_len=len(state.prompt_ids) + len(ids),
            kv_bytes=kv_bytes,
            kv_bytes_per_token=self.info.kv_bytes_per_token,
            end_probability=end_probability,
            finite=state.stopped != "nan",
            user_stop=state.stopped == "user",
            disconnected=state.stopped == "disconnect",
        )
        rules, info = state.stop, self.info
        limit = info.limit_for(len(state.prompt_ids))
        stops, reason, found = check_stops(seen, rules, end_ids=info.end_ids, context_limit=limit)
        shown, held = split_held(joined.text, found, finished=reason is not None)
        return Verdict(stops, reason, shown, held, joined.pending)

    def memory(self, state: SessionState, kv_len: int, kv_bytes: int, process: ProcessMemory | None) -> MemoryUse:
        """The bytes of this moment."""
        store, process = state.store, process or ProcessMemory.now(self.runner.device)
        return MemoryUse(
            weight_bytes=self.info.weight_bytes,
            kv_live_bytes=kv_bytes,
            kv_reserved_bytes=store.reserved_bytes,
            kv_formula_bytes=kv_len * self.info.kv_bytes_per_token,
            capture_bytes=state.ring.num_bytes,
            process_bytes=process.resident,
            device_allocated_bytes=process.on_device,
        )


def _text_before(state: SessionState) -> JoinedText:
    """The generated text without the newest token, as the record before it has it."""
    if len(state.chosen) == 1:
        return JoinedText("", b"")
    before = state.records[len(state.chosen) - 2]
    return JoinedText(before.text + before.held, before.pending)


def _timing(facts: ForwardFacts, began_ms: float) -> StepTiming | None:
    """Times up to now; this session's sampling began at `began_ms`. What was not spent on it, it waited for others."""
    if facts.asked_ms is None:
        return None
    end = now_ms()
    sampling, total = end - began_ms, end - facts.asked_ms
    return StepTiming(max(0.0, total - facts.own_ms - sampling), facts.forward_ms, sampling, total)


def _end_probability(candidates: Candidates, stages: Sequence[Stage], end_ids: Sequence[int]) -> float | None:
    """Final probability of all EOS tokens together; None where one is not among the candidates that carry theirs."""
    final = stages[-1].probs
    shown = candidates.ids[: final.size].tolist()
    if not end_ids or any(i not in shown for i in end_ids):
        return None
    return float(sum(final[shown.index(i)] for i in end_ids))
