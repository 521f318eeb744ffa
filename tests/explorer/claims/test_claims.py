"""Claims: every recomputed number against a table of its own, every link against the pages, and nothing left vague."""

from __future__ import annotations

import ast
import math
import re
from dataclasses import replace
from pathlib import Path

import pytest

from engine.shapes import NAMED
from engine.studies.claim_checks import CHECKS
from engine.studies.claim_checks.forwards import TEXT
from explorer.claims import words
from explorer.claims.catalogue import CLAIMS, TOPICS
from explorer.claims.claim import STEP, VERDICTS, Claim, Number
from explorer.claims.measured import CHECKS as RUNS
from explorer.labs import catalogue

ROOT = Path(__file__).resolve().parents[3]
BY_ID = {claim.id: claim for claim in CLAIMS}

GPT3 = 2 * 96 * 12_288 * 2  # bytes per token: key and value, layers, width, two bytes each
LLAMA_8B, LLAMA_70B = 2 * 32 * 8 * 128 * 2, 2 * 80 * 8 * 128 * 2
N_8B, N_70B, N_13B = 8_030_261_248, 70_553_706_496, 13_015_864_320  # parameters as transformers counts them
MATMUL_8B = N_8B - 128_256 * 4096  # the input embedding is looked up
N_V3, N_GPT3 = 671_026_419_200, 174_604_259_328

# What each claim must come to: whole numbers on paper, others from the literature or worked out by hand.
REFERENCE: dict[str, tuple[float, ...]] = {
    "scores-for-the-whole-vocabulary": (128_256,),
    "about-130000-scores": (128_256, 129_280, 151_936, 262_144, 32_000, 50_257, 49_152),
    "the-model-does-not-choose": (128_256, 0),
    "attention-is-the-layer": (176_160_768 / (176_160_768 + 41_943_040),),
    "scores-at-every-position": (2000 * 128_256 * 4, 513_024),
    "parallel-over-layers": (32,),
    "a-step-can-be-shared": (15_546_851_328, (15_546_851_328 + 4097 * LLAMA_8B) / 15_546_851_328),
    "prefill-is-compute-bound": (240.24, 295.34),
    "a-step-streams-every-weight": (
        MATMUL_8B, N_8B, 37_552_297_472, 37_552_297_472 - 129_280 * 7168, N_V3,
    ),
    "decode-is-memory-bound": (0.999512, 295.34),
    "nearly-all-tokens-are-decoded": (0.999,),
    "a-step-computes-one-position": (1,),
    "one-key-one-value-per-step": (256, 1024, 90, 270, 144, 144, 9216, 9216),
    "twenty-times-longer": (19.09, 1000 / (1000 * 546 / 34_000 + 49), 1050),
    "the-prompt-is-cheap": (3.386, 1000 * 546 / 34_000),
    "arithmetic-stays-flat": (31_787_065_344 / 15_010_373_632, 19_204_153_344 / 15_009_980_416, 28_629.016, 114_516.06),
    "cached-once-free-afterwards": (10_485_760_000,),
    "kv-depend-on-the-token-alone": (1, 31),
    "later-tokens-change-nothing": (0,),
    "kv-per-layer-and-head": (131_072, 4 * 131_072),
    "queries-are-not-cached": (32 * 32 * 128 * 2, 131_072),
    "third-token-three-keys": (3, 4),
    "n-times-n-plus-one-over-two": (200 * 201 // 2, 200, 100.5),
    "a-hundred-tokens-5050": (5050, 100, 50.5),
    "eight-million-positions": (8_390_656, 4096, 2048.5),
    "quadratic-and-cubic": (2000 * 2001 / (1000 * 1001), 2000 * 2001 * 2002 / (1000 * 1001 * 1002)),
    "linear-and-quadratic": (2, 2000 * 2001 / (1000 * 1001)),
    "five-hundred-times-less-attention": (495.93, 406.83, 2259.22),
    "no-arithmetic-is-saved": (448.3,),
    "gpt3-nine-gigabytes": (9, 9.664),
    "gpt3-the-factors": (96, 2, 12_288, GPT3),
    "gpt3-per-conversation": (500 * GPT3 / 2**30, 500 * GPT3 / 1e9, 9, 9.664),
    "llama2-13b-8192": (6.25, 6.711),
    "four-caches-outweigh-the-model": (26.8435456, 26.03172864, 1.031),
    "llama31-8b-per-token": (131_072, 128),
    "llama31-8b-at-32k": (3.90625, 4.194304, 4, 4.295),
    "llama31-70b-per-token": (327_680, 320),
    "deepseek-v3-671b": (671.03, 37.552),
    "deepseek-v3-at-32k": (70_272, 2.0943, 2.1445, 128 * (192 + 128) / 576),
    "four-times-the-model-a-quarter-of-the-cache": (3.843, 0.2327, 9.51, 0.2145, 1.653, 0.1362, GPT3 / 70_272),
    "why-gqa-mla-paging": (8 / 32, 0.5, 500 / 2048, 500 / 512),
    "bytes-over-bandwidth": (46.667,),
    "the-cache-term-is-small": tuple(tokens * LLAMA_70B / (2 * N_70B) for tokens in (1024, 8192, 32_000, 131_072)),
    "seventy-billion-140-gb": (141.107, 131.417),
    "h100-three-terabytes": (3.35, 2),
    "forty-seven-milliseconds": (46.667, 42.12),
    "a-70b-on-one-h100": (1.764, 23.33, 5.265, 21.06),
    "only-three-levers": (42.12, 29.40, 2 * N_70B / 8e9),
    "more-compute-does-not-help": (0.1415, 0.003032),
    "twenty-tokens-a-second": (21.43, 23.74),
    "tpu-two-and-a-half-ms": (2.536, 4.823),
    "tpu-twenty-one-ms": (20.857, 15.984, 4.873, 0.7664, 239.7152),
    "large-batches-turn-compute-bound": (0.7664, 2497.5),
    "batch-as-much-as-you-can": (7.783, 394.27, 47.94),
    "everything-lowers-the-floor": (46.667, 23.333),
    "decode-attention-near-one": (4096 / 4097, 8 * 4096 / 4104, 2 * 4096 / 4097, 228.3),
    "attention-never-compute-bound": (241.78, 2 * 241.78, 295.34, 258.2),
    "the-critical-batch": (240.24, 120.12, 309.7, 1921.95),
    "280-on-an-h100": (295.34, 378, 206.1, 281.25, 153.0),
    "scores-go-through-memory": (32, 8),
    "four-trips-128-mebibytes": (128, 137.439, 41.03),
    "ninety-nine-percent-scaffolding": (128 / 132, 128 / 129),
    "running-maximum-and-sum": (2, 2, 0.5),
    "tiles-are-exact": (5, 5, 1),
    "greedy-takes-the-largest": (1,),
    "temperature-divides": tuple(
        1 / (1 + math.exp(-1 / t) + math.exp(-2 / t)) for t in (0.5, 1.0, 2.0)
    ),
    "nucleus-adapts": (4, 1),
    "temperature-07-is-usual": (1, 1, 0.8, 0.6, 0.7),
    "top-k-forty-to-fifty": (50, 40, 0, 20),
    "temperature-zero-not-repeatable": (80, 1),
    "sums-depend-on-their-order": (2.0**-53, -(2.0**-11)),
    "cached-fp16-always-diverges": (1, 0),
    "end-of-turn-ends": (3,),
    "a-dozen-stop-rules": (8,),
    "cap-of-901-fails-at-900": (901,),
    "several-tokens-a-pass": (3.3616,),
    "sixty-to-eighty-percent-on-code": (0.53, 0.82),
    "three-to-five-tokens": (2.3056, 3.3616, 3.4, 4.2),
    "two-to-three-times-faster": (1.921, 2.951),
    "several-for-the-price-of-one": (1.512,),
    "speculation-keeps-the-law": (0.7, 0),
    "fourteen-not-nine": (9.664, 14.496),
    "the-second-vector-twice": (2,),
    "offsets-waste-a-page": (15 * GPT3 / 1e6,),
    "four-thousand-slots": (19.327, 18),
    "fifteen-on-80-gb": (4.139, 4, 289.9, 15),
    "the-allocator-says-fourteen": (1.449,),
}  # fmt: skip
SAID_WITHOUT_A_NUMBER = {
    "no-memory-between-calls", "one-token-after-another", "kv-fixed-for-good",
    "cached-equals-uncached", "stopping-is-the-engines", "length-is-known-at-the-end",
}  # fmt: skip


def ids(claims: tuple[Claim, ...]) -> list[str]:
    return [claim.id for claim in claims]


def test_the_table_knows_every_claim_that_has_a_number():
    assert set(REFERENCE) == {claim.id for claim in CLAIMS if claim.compute is not None}
    assert {claim.id for claim in CLAIMS if claim.compute is None} == SAID_WITHOUT_A_NUMBER


@pytest.mark.parametrize("claim_id", REFERENCE)
def test_a_claim_comes_to_what_the_table_says(claim_id):
    found = [number.value for number in BY_ID[claim_id].numbers]
    assert found == pytest.approx(REFERENCE[claim_id], rel=4e-4, abs=2e-16)
    whole = [(f, e) for f, e in zip(found, REFERENCE[claim_id], strict=True) if isinstance(e, int)]
    assert [f for f, _ in whole] == pytest.approx([e for _, e in whole], rel=1e-12, abs=2e-16)


@pytest.mark.parametrize("claim_id", ["llama31-8b-per-token", "gpt3-nine-gigabytes", "fifteen-on-80-gb"])
def test_a_number_follows_its_inputs(claim_id):
    claim = BY_ID[claim_id]
    assert claim.compute is not None
    changed = claim.compute(**{**claim.inputs, "model": "SmolLM2-135M"})
    assert [n.value for n in changed] != [n.value for n in claim.numbers]


def test_ids_are_unique_and_fit_a_link():
    assert len(BY_ID) == len(CLAIMS) > 60
    assert all(re.fullmatch(r"[a-z0-9-]{4,60}", claim.id) for claim in CLAIMS)
    assert len({topic.id for topic in TOPICS}) == len(TOPICS)


@pytest.mark.parametrize("claim", CLAIMS, ids=ids(CLAIMS))
def test_a_claim_says_what_why_and_where_from(claim):
    assert claim.verdict in VERDICTS
    for sentence in (claim.said, claim.because):
        assert sentence[0].isupper() or sentence[0].isdigit()
        assert sentence.endswith(".")
    assert claim.formula
    assert claim.source.name
    assert not claim.source.url or claim.source.url.startswith("https://")


def test_every_verdict_is_given():
    assert {claim.verdict for claim in CLAIMS} == set(VERDICTS)


@pytest.mark.parametrize("claim", [claim for claim in CLAIMS if claim.verdict == "exact"], ids=lambda claim: claim.id)
def test_the_reason_of_an_exact_claim_names_no_exception(claim):
    assert not re.search(r"\b(breaks?|unless|except|left out|for one request|as long as)\b", claim.because.lower())


def test_models_and_devices_among_the_inputs_bring_their_sources():
    sources = " ".join(BY_ID["four-trips-128-mebibytes"].sources)
    assert NAMED["Llama 3.1 8B"].source in sources
    assert "H100 data sheet" in sources


# --- links and runs --------------------------------------------------------------------------------------------


def controls_of(url: str) -> list[str]:
    """The names that a lab's controls have in the URL, as patterns, read from its source."""
    (lab,) = [lab for lab in catalogue.LABS if lab.url == url]
    folder = (ROOT / Path(*lab.module.split("."))).parent
    if not (folder / "page.py").is_file():
        pytest.skip(f"the lab {url} is not there yet")
    sources = [*folder.glob("*.py"), *(ROOT / "explorer" / "labs").glob("*.py")]
    found = []
    for node in ast.walk(
        ast.parse("\n".join(path.read_text().replace("from __future__", "from _f") for path in sources))
    ):
        if isinstance(node, ast.Call):
            found += [keyword.value for keyword in node.keywords if keyword.arg == "url"]
    return [re.escape(value.value) for value in found if isinstance(value, ast.Constant)]


@pytest.mark.parametrize("claim", [c for c in CLAIMS if c.see], ids=lambda c: c.id)
def test_every_link_goes_to_a_page_that_is_there_with_controls_that_it_has(claim):
    assert claim.see.url in {STEP, *(lab.url for lab in catalogue.LABS)}
    if claim.see.controls:
        known = controls_of(claim.see.url)
        assert all(any(re.fullmatch(name, given) for name in known) for given in claim.see.controls)


def test_a_link_names_models_that_the_calculator_has():
    named = [c.see.controls["model"] for c in CLAIMS if c.see and "model" in c.see.controls]
    assert named
    assert set(named) <= set(NAMED)


def test_every_run_is_a_check_of_the_engine_and_every_check_is_used():
    assert set(RUNS) == set(CHECKS) == {claim.measure for claim in CLAIMS if claim.measure}
    assert len(TEXT.split()) > 5


# --- in words --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("number", "expected"),
    [
        (Number("", 131_072, "B"), "131,072 B (131 kB)"),
        (Number("", 1_026_048_000, "B"), "1,026,048,000 B (1.03 GB)"),
        (Number("", 5050, "positions"), "5,050 positions"),
        (Number("", 19.08911, "×"), "19.09 ×"),
        (Number("", 46.6666, "ms"), "46.67 ms"),
        (Number("", 2497.46, "tokens"), "2,497 tokens"),
        (Number("", 0.00303214), "0.003032"),
        (Number("", 2.0**-53), "1.11e-16"),
        (Number("", 63.4e9 + 0.5, "B/s"), "63.4 GB/s"),
        (Number("", 0.0), "0"),
    ],
)
def test_numbers_are_written_with_their_units(number, expected):
    assert words.number_words(number) == expected


@pytest.mark.parametrize(
    ("given", "expected"),
    [(140e9, "140e9"), (3e12, "3e12"), (100e3, "100,000"), (46.6666666, "46.6667"), (8192, "8,192"), (2.5e6, "2.5e6"),
     (("H100 SXM", "H200"), "H100 SXM / H200")],
)  # fmt: skip
def test_inputs_are_written_as_they_are_given(given, expected):
    claim = replace(BY_ID["the-model-does-not-choose"], inputs={"some_input": given})
    assert words.input_words(claim) == f"some input = {expected}"


def test_a_search_finds_claims_with_all_its_words():
    hits = [claim.id for claim in CLAIMS if words.matches(claim, "GPT-3 nine")]
    assert "gpt3-nine-gigabytes" in hits
    assert "llama31-8b-per-token" not in hits
    assert all(words.matches(claim, "") for claim in CLAIMS)


def test_the_sheet_has_a_row_per_claim_with_its_numbers_and_inputs():
    rows = words.rows(CLAIMS)
    assert [row["id"] for row in rows] == ids(CLAIMS)
    (row,) = [row for row in rows if row["id"] == "a-hundred-tokens-5050"]
    assert "without a cache: 5,050 positions" in str(row["computed"])
    assert row["inputs"] == "prompt = 1, new tokens = 100"
    assert row["topic"] == "What the cache saves"
