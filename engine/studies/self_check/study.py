"""The self-check from beginning to end: run the oracle, judge every record as its row comes out, report."""

from __future__ import annotations

from collections.abc import Generator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from transformers import PreTrainedModel

from engine.decode import inspection
from engine.decode.session_state import SessionState
from engine.decode.stepping import Stepper
from engine.errors import PromptTooLong
from engine.progress import OnProgress
from engine.records import Check
from engine.studies.self_check.bounds import Bounds
from engine.studies.self_check.judge_cache import StockCache, judge_bytes, judge_norms, judge_tensors, weight_bytes
from engine.studies.self_check.judge_draw import judge_draw
from engine.studies.self_check.judge_logits import is_readable, judge_logits
from engine.studies.self_check.judge_penalty import judge_penalised_ends
from engine.studies.self_check.judge_run import judge_ids, judge_memory, judge_times
from engine.studies.self_check.judge_stages import judge_stages
from engine.studies.self_check.judge_stops import Limits, judge_rules_in_force, judge_stops, stop_strings
from engine.studies.self_check.judge_text import judge_text
from engine.studies.self_check.judged import Judged
from engine.studies.self_check.lines import Lines
from engine.studies.self_check.scores import Spread, staged
from engine.studies.self_check.stock_run import StockRun, is_stock

MOST_TOKENS = 4096  # of a session: eager attention is slow, and grows with the square
LOOKED_AT = 4  # steps whose attention rows are compared: the newest as it was kept, older ones replayed
JUDGED_AT_ONCE = 4  # records judged in one piece: about as long as a step


@dataclass(slots=True, eq=False)
class Study:
    """One self-check of one session.

    most_sessions  that may have shared a forward pass
    chunk          most tokens of a prompt in one forward pass
    """

    stepper: Stepper
    stock: PreTrainedModel
    state: SessionState
    most_sessions: int
    chunk: int
    bounds: Bounds
    lines: Lines
    weights: int

    def run(self, report: OnProgress) -> Generator[None, None, tuple[Check, ...]]:
        """Every check, yielding between pieces. Moves nothing."""
        state, runner, steps = self.state, self.stepper.runner, len(self.state.records)
        first, length = len(state.prompt_ids) - 1, len(state.prompt_ids) + steps - 1
        looked_at = _spread_out(steps)
        pause = runner.between_layers if runner.device.type == "cpu" else None
        positions = frozenset(first + step for step in looked_at)
        run = StockRun(self.stock, state.token_ids[:length], first, positions, self.chunk, pause, self._whole())
        self.lines.oracle.same("the oracle is stock transformers", is_stock(self.stock), True)
        for position, rows in run.pieces():
            runner.let_others_in()
            token_bytes = StockCache.bytes_of(run.cache, 1)
            for step, row in enumerate(rows, start=position - first):
                self._judge(step, row, token_bytes)
                if step in looked_at:
                    yield
                    self._judge_looks(step, row, run.attention[first + step])
                if step in looked_at or step % JUDGED_AT_ONCE == 0:
                    yield
            report(position + len(rows), length)
            yield
        cached = self._judge_cache(run, length)
        return self.lines.report(tokens=length, steps=steps, looked_at=looked_at, cached=cached)

    def _whole(self) -> int:
        """The prompt, where it decides which rotary factors all keys get: `generate` never feeds it in pieces."""
        switch, prompt = self.stepper.info.rope_switch, len(self.state.prompt_ids)
        return prompt if switch is not None and prompt > switch else 0

    def _judge(self, step: int, row: NDArray[np.float32], token_bytes: int) -> None:
        """Everything that one record shows but its keys and values."""
        state, lines = self.state, self.lines
        record, chosen = state.records[step], state.chosen[step]
        context = state.token_ids[: len(state.prompt_ids) + step]
        capture = state.ring.get(step)
        ours = None if capture is None else capture.logits.numpy()
        judged = Judged(record, step, context, chosen, row, ours, self.bounds.logits(row))
        is_cuda = self.stepper.runner.device.type == "cuda"
        judge_ids(lines.ids, judged, len(state.prompt_ids), self.most_sessions, self.chunk)
        judge_bytes(lines.bytes, record, judged.name, token_bytes * len(context))
        judge_memory(lines.memory, record, judged.name, self.weights, is_cuda=is_cuda)
        judge_times(lines.times, record, judged.name)
        before, after = (self._bytes_of(step + more) for more in (0, 1))
        judge_text(lines.text, record, judged.name, before, after, stop_strings(record))
        if not is_readable(lines.candidates, judged):
            return
        raw = judged.raw()
        stages = staged(raw, frozenset(context), chosen.sampling)
        spreads = [Spread(scores) for _, _, scores in stages]
        judge_logits(lines.logits, lines.candidates, judged, spreads[0])
        judge_stages(lines.stages, judged, stages, spreads)
        judge_draw(lines.draws, judged, spreads[0], spreads[-1])
        info = self.stepper.info
        judge_penalised_ends(lines.stages, judged, len(state.prompt_ids), info.end_ids)
        limits = Limits(
            info.end_ids,
            info.limit_for(len(state.prompt_ids)),
            step + 1,
            len(context) + 1,
            token_bytes * len(context),
            token_bytes,
        )
        judge_stops(lines.stops, judged, spreads[-1], limits, before)
        if step == len(state.records) - 1:
            judge_rules_in_force(lines.stops, judged, state.stop)

    def _bytes_of(self, tokens: int) -> bytes:
        """The bytes of the first generated tokens."""
        return b"".join(self.stepper.tokenizer.raw(chosen.token_id) for chosen in self.state.chosen[:tokens])

    def _judge_looks(self, step: int, row: NDArray[np.float32], eager: NDArray[np.float32]) -> None:
        """What somebody who looks at a step is shown: its logits and attention rows, kept or replayed."""
        runner, lines = self.stepper.runner, self.lines
        logits = inspection.logits_at(runner, self.state, step).numpy()
        lines.logits.add(f"step {step} looked at", logits, row, self.bounds.logits(row))
        ours = inspection.attention_at(runner, self.state, step)  # (L, H, K)
        lines.attention.add(f"step {step}", ours, eager, self.bounds.attention(eager))
        sums, theirs = ours.astype(np.float64).sum(-1), eager.astype(np.float64).sum(-1)
        lines.sums.add(f"step {step}", sums, theirs, self.bounds.row_sums(theirs, eager.shape[-1]))

    def _judge_cache(self, run: StockRun, length: int) -> str:
        """Keys, values, norms and bytes; in words what the bytes were held against."""
        state, lines, stock = self.state, self.lines, StockCache(run.cache)
        judge_tensors(lines.cache, state.store, stock, length, self.bounds, self.stepper.runner.let_others_in)
        end = len(state.prompt_ids)
        for step, record in enumerate(state.records):
            start = 0 if step == 0 else end + step - 1
            judge_norms(lines.cache, record, f"step {step}", start, end + step, stock, self.bounds)
        formula, theirs = length * self.stepper.info.kv_bytes_per_token, StockCache.bytes_of(run.cache, length)
        ledger = state.store.bytes_at(length)
        lines.bytes.same("the formula", formula, theirs)
        lines.bytes.same("our tensors", ledger, theirs)
        return (
            f"every step, and now {length:,} tokens: formula {formula:,} B, our tensors {ledger:,} B, "
            f"transformers' cache {theirs:,} B"
        )


def study(stepper: Stepper, stock: PreTrainedModel, state: SessionState, *, most_sessions: int, chunk: int) -> Study:
    """A self-check of a session as it is now. Raises NotPrefilled, or PromptTooLong beyond MOST_TOKENS."""
    state.require_step(len(state.records) - 1)
    length = len(state.prompt_ids) + len(state.records) - 1
    if length > MOST_TOKENS:
        raise PromptTooLong(
            f"This session holds {length:,} tokens. The check runs all of them again through eager attention, which "
            f"is done for up to {MOST_TOKENS:,}. Rewind, or begin with a shorter prompt."
        )
    bounds = Bounds.of(stock, stepper.runner.num_layers)
    weights = weight_bytes(list(stock.parameters()))
    return Study(stepper, stock, state, most_sessions, chunk, bounds, Lines(), weights)


def _spread_out(steps: int) -> tuple[int, ...]:
    """The newest step, the prefill, and a few between."""
    return tuple(sorted({round(step) for step in np.linspace(0, steps - 1, LOOKED_AT)}))
