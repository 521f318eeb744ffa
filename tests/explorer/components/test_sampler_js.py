"""The browser's stage maths against the engine's, over the same scores.

Exact where the script says so: the same counts, and probabilities within 1e-6. Where the histogram stood in for
the tail: probabilities within 0.001, and tokens kept beyond the candidates within a tenth (or 3 tokens).
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Sequence
from dataclasses import asdict
from typing import Any

import numpy as np
import pytest
import torch
from numpy.typing import NDArray
from playwright.sync_api import Browser, Page
from torch import Tensor

from engine.config import PRESETS, SamplingParams
from engine.decode.sampling import run_stages, summarise
from engine.records import Candidates
from tests.explorer.components.js_page import script

pytestmark = pytest.mark.browser

VOCAB = 49_152
EXACT = 1e-6
ESTIMATED = 0.001

CUT_WITHIN_THE_CANDIDATES = [
    *PRESETS.values(),
    *(SamplingParams(top_k=k) for k in (1, 2, 50, 255)),
    *(SamplingParams(temperature=t, top_k=50) for t in (1e-4, 0.3, 1, 2, 10)),
    *(
        SamplingParams(temperature=t, top_k=40, top_p=p)
        for t, p in itertools.product((0.5, 1.3), (0.0, 1e-8, 0.5, 0.95))
    ),
    *(
        SamplingParams(temperature=t, top_k=100, top_p=0.9, min_p=m)
        for t, m in itertools.product((0.7, 1.5), (0.02, 0.3, 1))
    ),
    *(SamplingParams(repetition_penalty=r, top_k=50) for r in (0.8, 1.1, 1.8)),
    SamplingParams(repetition_penalty=1.3, temperature=0.8, top_k=40, top_p=0.9, min_p=0.05),
    *(SamplingParams(temperature=0, repetition_penalty=r) for r in (0.5, 1.2, 3)),
    *(SamplingParams(min_p=m) for m in (0.02, 0.1, 0.5)),
    SamplingParams(temperature=1.4, min_p=0.1),
    *(SamplingParams(top_p=p) for p in (0.3, 0.6, 0.9)),
    SamplingParams(top_k=100_000),
]
CUT_BEYOND_THE_CANDIDATES = [
    *(SamplingParams(temperature=t) for t in (0.6, 0.9, 1.2, 1.6)),
    *(SamplingParams(temperature=t, top_p=p) for t, p in itertools.product((0.8, 1.3), (0.6, 0.9))),
    *(SamplingParams(top_k=k) for k in (300, 1000, 20_000)),
    SamplingParams(temperature=1.3, top_k=1000, top_p=0.9),
    SamplingParams(top_p=0.9999),
    SamplingParams(repetition_penalty=1.2),
    SamplingParams(repetition_penalty=0.8, temperature=1.2, top_p=0.95),
    SamplingParams(temperature=3.0, min_p=0.001),
]


def logits_like_a_models(seed: int, size: int = VOCAB) -> Tensor:
    """A broad bell that holds some percent of the mass, and a few dozen favourites above it."""
    rng = np.random.default_rng(seed)
    scores = rng.normal(2, 2, size)
    favourites = rng.choice(size, min(60, size), replace=False)
    scores[favourites] = rng.exponential(2, favourites.size) + 11
    return torch.from_numpy(scores.astype(np.float32))


def context_of(logits: Tensor, seed: int) -> list[int]:
    """Seen tokens: some of the likeliest and some of the rest."""
    rng = np.random.default_rng(seed)
    return [*logits.topk(30).indices.tolist()[::4], *rng.integers(0, logits.numel(), 100).tolist()]


@pytest.fixture(scope="module")
def page(browser: Browser) -> Iterator[Page]:
    """An empty page with the script loaded as a module and whatIf within reach."""
    source = "\n".join(script(name) for name in ("sampler_stages.js", "sampler.js"))
    lines = [line.removeprefix("export ") for line in source.splitlines() if not line.startswith("import ")]
    opened = browser.new_page()
    opened.set_content("<title>sampler</title>")
    opened.add_script_tag(type="module", content="\n".join([*lines, "globalThis.whatIf = whatIf;"]))
    opened.wait_for_function("() => Boolean(globalThis.whatIf)")
    yield opened
    opened.close()


def what_if(page: Page, candidates: Candidates, params: SamplingParams) -> dict[str, Any]:
    """The script's answer, its arrays as lists."""
    given = {
        "ids": candidates.ids.tolist(),
        "logits": candidates.logits.tolist(),
        "seen": candidates.seen.astype(int).tolist(),
        "logSumExp": candidates.log_sum_exp,
        "tailCounts": candidates.tail_counts.tolist(),
        "tailLow": candidates.tail_low,
        "tailHigh": candidates.tail_high,
    }
    call = """([c, params]) => {
        const answer = whatIf({...c, ids: Int32Array.from(c.ids), logits: Float32Array.from(c.logits),
            seen: Uint8Array.from(c.seen), tailCounts: Int32Array.from(c.tailCounts)}, params);
        const plain = (part) => ({...part, rows: Array.from(part.rows)});
        return {...plain(answer), stages: answer.stages.map(plain)};
    }"""
    answer: dict[str, Any] = page.evaluate(call, [given, asdict(params)])
    return answer


def probabilities(scores: Tensor) -> NDArray[np.float64]:
    weights = (scores.double() - scores.max()).exp()
    return (weights / weights.sum()).numpy()


def compare(page: Page, logits: Tensor, context: Sequence[int], params: SamplingParams) -> dict[str, Any]:
    """Hold every stage of the script's answer against the engine's; returns the answer."""
    candidates, stages = summarise(logits, context, params)
    answer = what_if(page, candidates, params)
    assert [(s["name"], s["label"]) for s in answer["stages"]] == [(s.name, s.label) for s in stages]
    exact_before = True
    for theirs, ours, (_, _, scores) in zip(answer["stages"], stages, run_stages(logits, context, params), strict=True):
        tolerance = EXACT if theirs["exact"] else ESTIMATED
        rows = probabilities(scores)[candidates.ids]
        assert theirs["rows"] == pytest.approx(rows, abs=tolerance), ours.label
        assert theirs["removedMass"] == pytest.approx(ours.removed_mass, abs=tolerance if exact_before else ESTIMATED)
        if theirs["exact"]:
            assert theirs["kept"] == ours.kept, ours.label
            assert np.count_nonzero(theirs["rows"]) == np.count_nonzero(rows)
        if theirs["exact"] and ours.kept <= candidates.ids.size:
            assert theirs["entropyBits"] == pytest.approx(ours.entropy_bits, abs=1e-5)
        exact_before = theirs["exact"]
    return answer


def kept_beyond(logits: Tensor, context: Sequence[int], params: SamplingParams) -> int:
    """Tokens outside the candidates that the engine keeps."""
    candidates, stages = summarise(logits, context, params)
    scores = run_stages(logits, context, params)[-1][2].numpy()
    return stages[-1].kept - int(np.isfinite(scores[candidates.ids]).sum())


@pytest.mark.parametrize("params", CUT_WITHIN_THE_CANDIDATES, ids=str)
def test_a_cut_within_the_candidates_is_exact(page: Page, params: SamplingParams) -> None:
    for seed in (1, 2):
        logits = logits_like_a_models(seed)
        context = context_of(logits, seed)
        answer = compare(page, logits, context, params)
        assert answer["exact"]
        assert answer["keptBeyond"] == kept_beyond(logits, context, params)


@pytest.mark.parametrize("params", CUT_BEYOND_THE_CANDIDATES, ids=str)
def test_a_cut_beyond_the_candidates_is_a_close_estimate_and_says_so(page: Page, params: SamplingParams) -> None:
    for seed in (4, 5):
        logits = logits_like_a_models(seed)
        context = context_of(logits, seed)
        answer = compare(page, logits, context, params)
        assert not answer["exact"]
        truth = kept_beyond(logits, context, params)
        assert abs(answer["keptBeyond"] - truth) <= max(3, 0.1 * truth)
        assert sum(answer["rows"]) + answer["tailProb"] == pytest.approx(1.0, abs=1e-9)


@pytest.mark.parametrize("params", [*CUT_WITHIN_THE_CANDIDATES[::4], *CUT_BEYOND_THE_CANDIDATES[::3]], ids=str)
def test_a_vocabulary_without_a_tail_is_always_exact(page: Page, params: SamplingParams) -> None:
    logits = logits_like_a_models(6, size=200)
    answer = compare(page, logits, context_of(logits, 6), params)
    assert answer["exact"]
    assert (answer["keptBeyond"], answer["tailProb"]) == (0, 0)


@pytest.mark.parametrize("k", [1, 5, 10])
def test_tokens_that_tie_with_the_kth_are_all_kept(page: Page, k: int) -> None:
    logits = logits_like_a_models(7).clamp(max=13)
    answer = compare(page, logits, [], SamplingParams(top_k=k))
    assert answer["exact"]
    assert answer["stages"][-1]["kept"] == int((logits == 13).sum()) > k


def test_a_tie_with_the_kth_that_reaches_into_the_tail_is_not_called_exact(page: Page) -> None:
    logits = torch.zeros(1000)
    logits[:10] = 5.0
    assert not compare(page, logits, [], SamplingParams(top_k=20))["exact"]


def test_greedy_is_not_called_exact_once_the_penalty_pushes_every_candidate_below_the_tail(page: Page) -> None:
    logits = torch.linspace(1.0, 9.0, 1000)
    answer = what_if_of(page, logits, list(range(700, 1000)), SamplingParams(temperature=0, repetition_penalty=50.0))
    assert not answer["exact"]
    answer = what_if_of(page, logits, list(range(700, 999)), SamplingParams(temperature=0, repetition_penalty=50.0))
    assert answer["exact"]
    assert answer["rows"].index(1) == 0


def what_if_of(page: Page, logits: Tensor, context: Sequence[int], params: SamplingParams) -> dict[str, Any]:
    return what_if(page, summarise(logits, context, params)[0], params)
