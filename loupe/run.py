"""A recorded run as numpy arrays and plain values, which shows itself in a notebook.

Letters in shapes: L layers, H query heads, G key-value heads, K keys in the cache during the step, M tokens fed,
N candidates (the likeliest 256 tokens), S stages of sampling.
"""

from __future__ import annotations

import html
from collections.abc import Mapping
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from engine.errors import LoupeError
from explorer.recordings.reading import Recording, read_recording
from explorer.recordings.single_page import page_of

if TYPE_CHECKING:
    import pandas as pd

FRAME_HEIGHT = 860  # of the page inside a notebook, in pixels


class Step:
    """One forward pass of the model and the token drawn from its last row. Step 0 is the prefill.

    After it the cache holds every token but the one just drawn.
    """

    def __init__(self, recording: Recording, index: int) -> None:
        self._recording = recording
        self.index = index

    def __repr__(self) -> str:
        return f"Step({self.index}, {self.phase}, drew {self.token!r})"

    @property
    def record(self) -> Mapping[str, Any]:
        """Everything the recording says of this step beside its arrays, as docs/recordings.md names it."""
        step: Mapping[str, Any] = self._recording.header["steps"][self.index]
        return step

    @property
    def phase(self) -> str:
        """'prefill' or 'decode'."""
        return str(self.record["phase"])

    @property
    def input_ids(self) -> tuple[int, ...]:
        """(M) ids fed: the whole prompt at step 0, one id after."""
        return tuple(self.record["input_ids"])

    @property
    def token_id(self) -> int:
        """The id that the sequence goes on with."""
        return int(self.record["draw"]["token_id"])

    @property
    def token(self) -> str:
        """That token as text; bytes that are no whole character as �."""
        header = self._recording.header
        position = len(header["session"]["recipe"]["prompt_ids"]) + self.index
        return bytes.fromhex(header["tokens"][position]["hex"]).decode(errors="replace")

    @property
    def u(self) -> float | None:
        """The uniform number in [0, 1) that picked the token; None where no draw was made."""
        u: float | None = self.record["draw"]["u"]
        return u

    @property
    def kv_len(self) -> int:
        """Tokens in the cache after this forward pass."""
        return int(self.record["kv_len"])

    @property
    def kv_norms(self) -> NDArray[np.float32]:
        """(2, L, G, M) L2 norm of each new key (0) and value (1)."""
        return self._array("kv_norms", np.float32)

    @property
    def attention(self) -> NDArray[np.float32] | None:
        """(L, H, K) the weights that the newest token's query gave to each cached key; each row sums to 1.

        Kept in float16, so each weight is right to 0.05 %. None where a run was so long that only
        `attention_maxima` was kept.
        """
        return self._array("attention", np.float32) if self._recording.has(self.index, "attention") else None

    @property
    def attention_maxima(self) -> NDArray[np.float32] | None:
        """(L, H, 64) the largest weight in each of 64 equal stretches of the keys; None where `attention` has all."""
        if not self._recording.has(self.index, "attention_thumb"):
            return None
        maxima: NDArray[np.float32] = np.divide(self._array("attention_thumb", np.float32), 255, dtype=np.float32)
        return maxima

    @property
    def candidate_ids(self) -> NDArray[np.int32]:
        """(N) the likeliest tokens by raw logit, likeliest first."""
        return self._array("cand_ids", np.int32)

    @property
    def logits(self) -> NDArray[np.float32]:
        """(N) their raw logits."""
        return self._array("cand_logits", np.float32)

    @property
    def probabilities(self) -> NDArray[np.float64]:
        """(N) their probabilities before sampling: exp(logit - log of the sum over the whole vocabulary)."""
        probabilities: NDArray[np.float64] = np.exp(self.logits.astype(np.float64) - self.record["log_sum_exp"])
        return probabilities

    @property
    def stages(self) -> tuple[str, ...]:
        """(S) the stages of sampling in their order: "raw probability", "temperature 0.8", ..."""
        return tuple(stage["label"] for stage in self.record["stages"])

    @property
    def stage_probabilities(self) -> NDArray[np.float32]:
        """(S, 64 or fewer) probabilities of the first candidates after each stage; 0 where a stage removed one."""
        return self._array("stage_probs", np.float32)

    @property
    def forward_ms(self) -> float | None:
        """Wall time of the forward pass; None where it was not timed."""
        timing = self.record["timing_ms"]
        return None if timing is None else float(timing["forward"])

    def _array(self, name: str, dtype: type[np.generic]) -> NDArray[Any]:
        array = self._recording.array(self.index, name).astype(dtype)
        array.setflags(write=False)
        return array


class Run:
    """A recorded run. In a notebook it shows itself: the Step page in a frame that can reach nothing else."""

    def __init__(self, data: bytes) -> None:
        self._data = data
        self._recording = read_recording(data)
        self.steps = tuple(Step(self._recording, i) for i in range(len(self.header["steps"])))

    def __repr__(self) -> str:
        return f"Run({self.prompt!r}, {len(self.steps)} steps, {self.model['name']})"

    def _repr_html_(self) -> str:
        return (
            f'<iframe sandbox="allow-scripts allow-downloads" style="width:100%;height:{FRAME_HEIGHT}px;border:0" '
            f'title="{html.escape(repr(self))}" srcdoc="{html.escape(self.to_html())}"></iframe>'
        )

    @property
    def header(self) -> Mapping[str, Any]:
        """Everything in the recording but the arrays, as docs/recordings.md describes it."""
        return self._recording.header

    @property
    def model(self) -> Mapping[str, Any]:
        """The model in numbers."""
        model: Mapping[str, Any] = self.header["model"]
        return model

    @property
    def prompt(self) -> str | None:
        """As it was typed; None where only its ids are known."""
        prompt: str | None = self.header["session"]["prompt"]
        return prompt

    @property
    def token_ids(self) -> tuple[int, ...]:
        """Prompt and continuation."""
        return tuple(token["id"] for token in self.header["tokens"])

    @cached_property
    def text(self) -> str:
        """Prompt and continuation as text, special tokens as they are spelled."""
        raw = b"".join(bytes.fromhex(token["hex"]) for token in self.header["tokens"])
        return raw.decode(errors="replace")

    @property
    def finish_reason(self) -> str | None:
        """Which stop rule fired; None where decoding could have gone on."""
        reason: str | None = self.header["session"]["finish_reason"]
        return reason

    def save(self, path: str | Path) -> Path:
        """Write it as a `.loupe` file, and return where."""
        Path(path).write_bytes(self._data)
        return Path(path)

    def to_html(self) -> str:
        """One HTML page that plays it anywhere, without a server or a network."""
        return page_of(self._data, title=self.prompt or "")

    def save_html(self, path: str | Path) -> Path:
        """Write that page, and return where."""
        Path(path).write_text(self.to_html(), encoding="utf-8")
        return Path(path)

    def to_dataframe(self) -> pd.DataFrame:
        """One row a step. Raises LoupeError where pandas is not installed."""
        try:
            import pandas as pd
        except ImportError:
            raise LoupeError(
                "to_dataframe() needs pandas: pip install pandas. run.steps has the same numbers."
            ) from None
        return pd.DataFrame([_row(step) for step in self.steps]).set_index("step")


def _row(step: Step) -> dict[str, Any]:
    record, draw = step.record, step.record["draw"]
    return {
        "step": step.index,
        "phase": step.phase,
        "tokens_fed": len(step.input_ids),
        "kv_len": step.kv_len,
        "kv_bytes": record["kv_bytes"],
        "token_id": step.token_id,
        "token": step.token,
        "mode": draw["mode"],
        "u": draw["u"],
        "raw_probability": draw["raw_prob"],
        "final_probability": draw["final_prob"],
        "rank": draw["raw_rank"],
        "entropy_bits": record["stages"][-1]["entropy_bits"],
        "kept": record["stages"][-1]["kept"],
        "forward_ms": step.forward_ms,
        "batch_size": record["batch_size"],
        "finish_reason": record["finish_reason"],
    }
