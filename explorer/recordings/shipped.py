"""The recordings that ship with Loupe, and how they are made: `python -m explorer.recordings.shipped`.

Each is a run of the bundled model on a CPU in float32. The first step of the first one is what the page shows until its
own model is there. Where the format or what a record holds has changed, make them anew.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from pathlib import Path

from engine.config import EngineConfig, SamplingParams, StopRules
from engine.records import SHOWN
from engine.starting import start
from explorer.live.frame import Planes, pack
from explorer.live.model_payload import examples_json
from explorer.recordings.reading import read_recording
from explorer.recordings.recorder import record
from explorer.recordings.writing import SUFFIX, recording_of
from explorer.workspace.examples import PromptMode

PLAIN, GREEDY = SamplingParams(), SamplingParams(temperature=0.0)
CHAT = SamplingParams(temperature=0.7, top_k=50, top_p=0.9)
FOLDER = Path(__file__).resolve().parents[2] / "assets" / "recordings"


@dataclass(frozen=True, slots=True)
class Shipped:
    """A recording that ships with Loupe: its file's name, and the run in it. What it shows is said in words.toml."""

    name: str
    prompt: str
    steps: int
    mode: PromptMode = "raw"
    sampling: SamplingParams = PLAIN
    seed: int = 0

    @property
    def file(self) -> Path:
        """Where it lies."""
        return FOLDER / f"{self.name}{SUFFIX}"


SHIPPED = (
    Shipped("the-cat-sat", "The cat sat", 12),
    Shipped("time-flies", "Time flies like an arrow; fruit flies", 16, sampling=GREEDY),
    Shipped("greedy", "The capital of France is", 16, sampling=GREEDY),
    Shipped("a-chat-turn", "What is a cat?", 20, "chat", CHAT),
    Shipped("tokens-are-bytes", "🐈 = cat, 🐕 = dog, 猫 =", 12, sampling=GREEDY),
)


def main() -> None:
    """Make all of them."""
    engine = start(EngineConfig(device="cpu", dtype="float32", prefix_bytes=0))
    try:
        engine.measure_machine().result()
        record(engine, SHIPPED[0].prompt, stop=StopRules(max_new_tokens=4))  # first forward passes take longer
        for one in SHIPPED:
            stop = StopRules(max_new_tokens=one.steps)
            run = record(engine, one.prompt, mode=one.mode, sampling=one.sampling, stop=stop, seed=one.seed)
            one.file.write_bytes(recording_of(run))
    finally:
        engine.close()


@cache
def first_step() -> bytes:
    """The prefill of the first recording as a frame of its own, with the examples that a page offers."""
    recording = read_recording(SHIPPED[0].file.read_bytes())
    header, planes = dict(recording.header), Planes()
    session, step = header["session"], header["steps"][0]
    prompt = len(session["recipe"]["prompt_ids"])
    arrays = {name: planes.add(recording.array(0, name), plane["dtype"]) for name, plane in step["planes"].items()}
    named = {str(token_id) for token_id in recording.array(0, "cand_ids").tolist()[:SHOWN]}
    named |= {str(token["id"]) for token in header["tokens"][: prompt + 1]}
    header |= {
        "examples": examples_json(),
        "session": {**session, "finish_reason": None, "recipe": None},
        "steps": [{**step, "planes": arrays}],
        "tokens": header["tokens"][: prompt + 1],
        "pieces": {token_id: piece for token_id, piece in header["pieces"].items() if token_id in named},
    }
    return pack(header, planes)


if __name__ == "__main__":
    main()
