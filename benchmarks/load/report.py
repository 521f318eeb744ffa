"""What a run is summed up as: one line of a table, the targets it answers to, and everything as JSON."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from statistics import fmean

from benchmarks.load.run import Used, Wanted
from benchmarks.load.seen import Drawn, Seen, percentile
from benchmarks.results import Row

TARGETS_S = {32: 0.35, 100: 1.0, 300: 1.5}  # 95th percentile of click to token, by students
BESIDE_KV_MB = 2.0


@dataclass(frozen=True, slots=True)
class Summary:
    """One run in numbers. Milliseconds are of people's clicks, autoplay left out, and means where not named otherwise.

    tokens_per_s   steps drawn per second of counted time, autoplay included
    batch_seen     sessions in a step's forward, mean over steps: what a student sees
    batch_forward  the same, mean over forwards: what the machine did
    wait_ms, forward_ms, sample_ms, record_ms   inside the engine
    around_ms      the rest: sockets, the frame
    beside_forward_p95_ms   95th percentile of a click without its forward
    server_ms_per_step   processor time of the server, all threads
    """

    clients: int
    batching: bool
    clicks: int
    p50_ms: float
    p95_ms: float
    p99_ms: float
    tokens_per_s: float
    batch_seen: float
    batch_forward: float
    batch_largest: int
    wait_ms: float
    forward_ms: float
    sample_ms: float
    record_ms: float
    around_ms: float
    beside_forward_p95_ms: float
    server_ms_per_step: float
    server_cores: float
    client_cores: float
    opened_p95_s: float
    first_token_p95_s: float
    frame_kb: float
    received_kb_per_frame: float
    pressed: int
    lost: int
    doubled: int
    unanswered: int
    refused: int
    errors: int
    reloads: int
    vanished: int
    sessions: int
    session_mb: float
    beside_kv_mb: float
    load_average: tuple[float, float]


def summarise(wanted: Wanted, seen: Seen, used: Used) -> Summary:
    """The numbers of one run."""
    clicks = [step for step in seen.drawn if not step.autoplay]
    waits = [step.click_ms for step in clicks]
    drawn = max(1, len(seen.drawn))
    return Summary(
        clients=wanted.clients,
        batching=wanted.batching,
        clicks=len(clicks),
        p50_ms=percentile(waits, 0.5),
        p95_ms=percentile(waits, 0.95),
        p99_ms=percentile(waits, 0.99),
        tokens_per_s=len(seen.drawn) / used.counted_s,
        batch_seen=_mean([step.batch_size for step in seen.drawn]),
        batch_forward=drawn / max(1.0, sum(1 / step.batch_size for step in seen.drawn)),
        batch_largest=max((step.batch_size for step in seen.drawn), default=0),
        **_parts(clicks),
        beside_forward_p95_ms=percentile([step.click_ms - step.forward_ms for step in clicks], 0.95),
        server_ms_per_step=1e3 * used.server_cpu_s / drawn,
        server_cores=used.server_cpu_s / used.counted_s,
        client_cores=used.client_cpu_s / used.counted_s,
        opened_p95_s=percentile(seen.opened_s, 0.95),
        first_token_p95_s=percentile(seen.first_s, 0.95),
        frame_kb=_mean(seen.frame_bytes) / 1e3,
        received_kb_per_frame=seen.received_bytes / max(1, len(seen.frame_bytes)) / 1e3,
        pressed=seen.pressed,
        lost=seen.lost,
        doubled=seen.doubled,
        unanswered=seen.unanswered,
        refused=seen.refused,
        errors=seen.errors.total(),
        reloads=seen.reloads,
        vanished=seen.vanished,
        sessions=used.sessions,
        session_mb=used.session_mb,
        beside_kv_mb=used.beside_kv_mb,
        load_average=used.load_average,
    )


def _parts(clicks: Sequence[Drawn]) -> dict[str, float]:
    return {
        "wait_ms": _mean([step.wait_ms for step in clicks]),
        "forward_ms": _mean([step.forward_ms for step in clicks]),
        "sample_ms": _mean([step.sample_ms for step in clicks]),
        "record_ms": _mean([s.engine_ms - s.wait_ms - s.forward_ms - s.sample_ms for s in clicks]),
        "around_ms": _mean([step.click_ms - step.engine_ms for step in clicks]),
    }


def _mean(values: Sequence[float]) -> float:
    return fmean(values) if values else 0.0


def rows(summary: Summary) -> list[Row]:
    """The run's budgets. Without batching there is nothing to meet: those numbers are for comparison."""
    name = f"{summary.clients} students, {'batching' if summary.batching else 'one session per forward'}"
    target = TARGETS_S.get(summary.clients) if summary.batching else None
    parts = {key: float(value) for key, value in asdict(summary).items() if isinstance(value, int | float)}
    faults = summary.errors + summary.lost + summary.doubled + summary.unanswered
    found = [
        Row(
            f"{name}: click to token, 95th percentile",
            summary.p95_ms / 1e3,
            "s",
            "report" if target is None else "at most",
            target,
            summary.p50_ms / 1e3,
            parts,
        ),
        Row(f"{name}: errors, lost, doubled and unanswered presses", faults, "", "at most", 0.0),
    ]
    if summary.batching and summary.clients >= 8:  # with fewer the growth is noise
        found.append(Row(f"{name}: a session beside its KV", summary.beside_kv_mb, "MB", "at most", BESIDE_KV_MB))
    return found


HEAD = (
    "students",
    "batching",
    "clicks",
    "p50 ms",
    "p95 ms",
    "p99 ms",
    "tokens/s",
    "batch",
    "largest",
    "lost",
    "doubled",
    "unanswered",
    "errors",
    "MB/session",
    "= wait +",
    "forward +",
    "sample +",
    "record +",
    "around",
    "p95 less forward",
    "CPU ms/step",
    "load",
)


def line(s: Summary) -> tuple[str, ...]:
    """A run as a line under `HEAD`."""
    numbers = (s.p50_ms, s.p95_ms, s.p99_ms, s.tokens_per_s, s.batch_forward)
    parts = (
        s.wait_ms,
        s.forward_ms,
        s.sample_ms,
        s.record_ms,
        s.around_ms,
        s.beside_forward_p95_ms,
        s.server_ms_per_step,
    )
    return (
        str(s.clients),
        "on" if s.batching else "off",
        str(s.clicks),
        *(f"{value:.1f}" for value in numbers),
        str(s.batch_largest),
        str(s.lost),
        str(s.doubled),
        str(s.unanswered),
        str(s.errors),
        f"{s.session_mb:.1f}",
        *(f"{value:.1f}" for value in parts),
        f"{s.load_average[0]:.1f}-{s.load_average[1]:.1f}",
    )


def columns(lines: Sequence[Sequence[str]]) -> str:
    """Text columns, flush right."""
    widths = [max(len(cells[i]) for cells in lines) for i in range(len(lines[0]))]
    return "\n".join("  ".join(cell.rjust(width) for cell, width in zip(c, widths, strict=True)) for c in lines)
