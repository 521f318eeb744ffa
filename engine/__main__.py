"""The decode loop without a browser: `python -m engine "The cat sat" --max-new-tokens 16 --temperature 0 --json`.

One JSON object per step on standard output, or a table a person can read. Errors go to standard error, exit code 2.
`--record` and `--html` keep the run as a file. What writes those belongs to the page: this command is a caller of the
engine and no part of it, so it may ask for that.
"""

from __future__ import annotations

import argparse
import dataclasses
import json
import os
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from engine.config import EngineConfig, SamplingParams, StopRules
from engine.errors import LoupeError
from engine.lean_imports import import_libraries
from engine.starting import start

if TYPE_CHECKING:
    from engine.facts import ModelInfo
    from engine.llm_engine import LLMEngine
    from engine.records import StepRecord
    from engine.session import DecodeSession
    from engine.tokens import EncodedPrompt
    from explorer.recordings.recorder import Recorder

INFO_FIELDS = (
    "id",
    "name",
    "architecture",
    "origin",
    "licence",
    "folder",
    "dtype",
    "device",
    "parameters",
    "weight_bytes",
    "num_layers",
    "num_heads",
    "num_kv_heads",
    "head_dim",
    "vocab_size",
    "kv_bytes_per_token",
    "context_limit",
)
READER_GONE = 141  # what a shell reports of a program that SIGPIPE ended
SHORT_NAMES = {"num_layers": "layers", "num_heads": "heads", "num_kv_heads": "kv_heads", "vocab_size": "vocab"}


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command line; returns the exit code."""
    args = parser().parse_args(arguments)
    try:
        if not args.info and args.prompt is None:
            raise LoupeError('There is no prompt. Try: python -m engine "The cat sat"')
        sampling, stop = settings(args)
        return run(args, sampling, stop)
    except LoupeError as error:
        print(f"error: {error}", file=sys.stderr)
        return 2
    except BrokenPipeError:
        return _reader_gone()


def _reader_gone() -> int:
    """Whoever read the output has enough (`| head -1`). Python must not find out again when it flushes at its end."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    return READER_GONE


def parser() -> argparse.ArgumentParser:
    """Every option, with the defaults of the engine's own settings."""
    words = argparse.ArgumentParser(prog="python -m engine", description="Step a language model, one token at a time.")
    words.add_argument("prompt", nargs="?", help="text to continue; a user turn with --chat")
    words.add_argument("--model", help="a name, a Hub id, a folder or a .gguf file (default: $LOUPE_MODEL)")
    words.add_argument("--device", choices=("auto", "cpu", "cuda"), default="auto")
    words.add_argument("--dtype", choices=("auto", "float32", "bfloat16", "float16"), default="auto")
    words.add_argument("--chat", action="store_true", help="put the prompt through the model's chat template")
    words.add_argument("--seed", type=int, default=0)
    draw, rules = SamplingParams(), StopRules()
    words.add_argument("--temperature", type=float, default=draw.temperature, help="0 is greedy (default: %(default)s)")
    words.add_argument("--top-k", type=int, default=draw.top_k, help="0 is off (default: %(default)s)")
    words.add_argument("--top-p", type=float, default=draw.top_p, help="1 is off (default: %(default)s)")
    words.add_argument("--min-p", type=float, default=draw.min_p, help="0 is off (default: %(default)s)")
    words.add_argument(
        "--repetition-penalty", type=float, default=draw.repetition_penalty, help="1 is off (default: %(default)s)"
    )
    words.add_argument("--max-new-tokens", type=int, default=rules.max_new_tokens, help="(default: %(default)s)")
    words.add_argument("--stop", action="append", default=[], metavar="TEXT", help="stop at this text; may be repeated")
    words.add_argument("--ignore-end-ids", action="store_true", help="go on past the model's own EOS tokens")
    words.add_argument("--max-kv-bytes", type=int, default=rules.max_kv_bytes, help="0 is off (default: %(default)s)")
    words.add_argument("--attention", nargs=2, type=int, metavar=("LAYER", "HEAD"), help="add this head's row")
    words.add_argument(
        "--record", metavar="FILE", help="keep the run as a recording, to be opened on the page (.loupe)"
    )
    words.add_argument("--html", metavar="FILE", help="keep the run as one HTML page that plays it anywhere")
    words.add_argument("--info", action="store_true", help="print the model's facts and stop")
    words.add_argument("--json", action="store_true", help="one JSON object per step instead of a table")
    return words


def settings(args: argparse.Namespace) -> tuple[SamplingParams, StopRules]:
    """The settings a command line asks for, checked."""
    sampling = SamplingParams(args.temperature, args.top_k, args.top_p, args.min_p, args.repetition_penalty)
    stop = StopRules(not args.ignore_end_ids, args.max_new_tokens, tuple(args.stop), args.max_kv_bytes)
    return sampling, stop


def run(args: argparse.Namespace, sampling: SamplingParams, stop: StopRules) -> int:
    """Load the model, then print its facts or step it until a rule stops it."""
    model = args.model or os.environ.get("LOUPE_MODEL") or EngineConfig().model
    config = EngineConfig(model=model, device=args.device, dtype=args.dtype)
    if args.info:
        import_libraries()
        from engine.models.loader import load_model  # here, so that --help and bad settings answer without torch

        show_info(load_model(config).info, as_json=args.json)
        return 0
    targets = [Path(name) for name in (args.record, args.html) if name]
    require_writable(targets)
    engine = start(config)
    try:
        session = engine.create_session(sampling=sampling, stop=stop, seed=args.seed, watched=bool(targets))
        prompt = encode(engine, args)
        recorder = recorder_of(engine, session) if targets else None
        step_through(engine, session, prompt, args, recorder)
        if recorder is not None:
            keep(recorder, prompt, args)
    finally:
        engine.close()
    return 0


def encode(engine: LLMEngine, args: argparse.Namespace) -> EncodedPrompt:
    """The prompt as ids."""
    from engine.text.tokenizer import ChatMessage

    if args.chat:
        return engine.tokenizer.encode_chat([ChatMessage("user", args.prompt)])
    return engine.tokenizer.encode(args.prompt)


def require_writable(targets: Sequence[Path]) -> None:
    """Raises LoupeError where a file cannot be written: before the run, not after it."""
    for target in targets:
        if target.is_dir() or not target.parent.is_dir() or not os.access(target.parent, os.W_OK):
            raise LoupeError(
                f"{target} cannot be written: name a file in a folder that is there and can be written to."
            )


def recorder_of(engine: LLMEngine, session: DecodeSession) -> Recorder:
    """What keeps each step's attention as it comes."""
    from explorer.recordings.recorder import Recorder

    return Recorder(engine, session)


def keep(recorder: Recorder, prompt: EncodedPrompt, args: argparse.Namespace) -> None:
    """Write what was asked for, and say so on standard error."""
    from explorer.recordings.single_page import page_of
    from explorer.recordings.writing import recording_of

    data = recording_of(recorder.run(args.prompt, "chat" if args.chat else "raw", prompt.notes))
    if args.record:
        Path(args.record).write_bytes(data)
        print(f"wrote {args.record} ({len(data):,} bytes)", file=sys.stderr)
    if args.html:
        page = page_of(data, title=args.prompt).encode()
        Path(args.html).write_bytes(page)
        print(f"wrote {args.html} ({len(page):,} bytes)", file=sys.stderr)


def step_through(
    engine: LLMEngine,
    session: DecodeSession,
    prompt: EncodedPrompt,
    args: argparse.Namespace,
    recorder: Recorder | None = None,
) -> None:
    """Prefill, then step until a rule stops it, printing each record as it comes."""
    record = session.prefill(prompt).result()
    if not args.json:
        print(TABLE_HEAD)
    while True:
        row = None
        if recorder is not None:
            recorder.take(record)
        if args.attention:
            layer, head = args.attention
            row = attention_row(session, record.index, layer, head)
        print(json.dumps(as_json(record, row)) if args.json else as_row(engine, record, row), flush=True)
        if record.finish_reason is not None:
            break
        record = session.step().result()
    if not args.json:
        print(f"\n{args.prompt}{record.text}\n\nstopped: {record.finish_reason}")


def attention_row(session: DecodeSession, step: int, layer: int, head: int) -> list[float]:
    """One head's weights over the keys cached at `step`."""
    weights = session.attention(step).result()
    num_layers, num_heads, _ = weights.shape
    if not (0 <= layer < num_layers and 0 <= head < num_heads):
        raise LoupeError(
            f"--attention {layer} {head} is out of range: layers are 0 to {num_layers - 1}, heads 0 to {num_heads - 1}."
        )
    return [float(w) for w in weights[layer, head]]


def as_json(record: StepRecord, attention: list[float] | None) -> dict[str, Any]:
    """One step as plain JSON values."""
    timing = record.timing
    assert timing is not None, "a step that was run was timed"
    found: dict[str, Any] = {
        "index": record.index,
        "phase": record.phase,
        "input_ids": list(record.input_ids),
        "positions": list(record.positions),
        "emitted_ids": list(record.emitted_ids),
        "text": record.text,
        "held": record.held,
        "pending_bytes": record.pending.hex(),
        "kv_len": record.kv_len,
        "kv_bytes": record.kv_bytes,
        "stages": [
            {
                "name": stage.name,
                "kept": stage.kept,
                "entropy_bits": stage.entropy_bits,
                "top": [[int(i), float(p)] for i, p in zip(stage.top_ids, stage.top_probs, strict=True)],
            }
            for stage in record.stages
        ],
        "penalised_ends": [dataclasses.asdict(end) for end in record.penalised_ends],
        "u": record.draw.u,
        "stop": [dataclasses.asdict(check) for check in record.stops],
        "finish_reason": record.finish_reason,
        "timing_ms": {
            "wait": timing.wait_ms,
            "forward": timing.forward_ms,
            "sample": timing.sample_ms,
            "other": timing.other_ms,
            "total": timing.total_ms,
        },
        "batch_size": record.batch_size,
    }
    if attention is not None:
        found["attention"] = attention
    return found


TABLE_HEAD = (
    f"{'step':>4}  {'fed':>5}  {'cached':>6}  {'kv kB':>8}  {'token':<18} {'p':>6}  {'kept':>6}  {'u':>5}  {'ms':>7}"
)


def as_row(engine: LLMEngine, record: StepRecord, attention: list[float] | None) -> str:
    """One step as a line of the table."""
    from engine.text.tokenizer import visible

    token = visible(engine.tokenizer.piece(record.emitted_ids[0]))
    u = "" if record.draw.u is None else f"{record.draw.u:.3f}"
    total = "" if record.timing is None else f"{record.timing.total_ms:.1f}"
    line = (
        f"{record.index:>4}  {len(record.input_ids):>5}  {record.kv_len:>6}  {record.kv_bytes / 1e3:>8.1f}  "
        f"{token:<18} {record.draw.final_prob:>6.3f}  {record.stages[-1].kept:>6}  {u:>5}  {total:>7}"
    )
    return line if attention is None else line + "  " + " ".join(f"{w:.3f}" for w in attention)


def show_info(info: ModelInfo, *, as_json: bool) -> None:
    """The model's facts."""
    facts = {SHORT_NAMES.get(name, name): getattr(info, name) for name in INFO_FIELDS}
    facts |= {"end_ids": list(info.end_ids), "defaults": dict(info.defaults), "notes": list(info.notes)}
    if as_json:
        print(json.dumps(facts), flush=True)
        return
    for name, value in facts.items():
        print(f"{name:<20} {value:,}" if isinstance(value, int) else f"{name:<20} {value}")


if __name__ == "__main__":
    sys.exit(main())
