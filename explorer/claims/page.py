"""The Claims page: what is often said about the decode loop, computed again, with a verdict and a place to try it."""

from __future__ import annotations

import functools
from concurrent.futures import Future

import streamlit as st

from engine.errors import LoupeError
from engine.studies.claim_records import Finding
from explorer.claims import measured, words
from explorer.claims.catalogue import CLAIMS, TOPICS
from explorer.claims.claim import STEP, VERDICTS, Claim, See, Verdict
from explorer.hosting.runtime import runtime
from explorer.labs import catalogue, charts, controls, live, progress, shell
from explorer.labs.shell import escaped
from explorer.pages import step

ALL = "all"
CLAIM = "claim"  # one claim alone, in the URL
COLOURS: dict[Verdict, str] = {
    "exact": "green",
    "rounded": "blue",
    "conditional": "orange",
    "wrong": "red",
    "not verifiable": "gray",
}
ICONS: dict[Verdict, str] = {
    "exact": ":material/check:",
    "rounded": ":material/adjust:",
    "conditional": ":material/call_split:",
    "wrong": ":material/close:",
    "not verifiable": ":material/help:",
}


def page() -> None:
    """The filters, then the claims by topic."""
    shell.lab("Fact check", "How much of what is often said about the decode loop holds when it is computed again?")
    alone = _asked_claim()
    if alone is not None:
        st.button("Show all claims", key="all_claims", icon=":material/arrow_back:", on_click=_show_all)
        _claim(alone)
        return
    shown = _chosen()
    with st.container(horizontal=True, vertical_alignment="center", key="claim_count"):
        st.text(_count(shown), width="stretch")
        sheet = charts.csv_text(words.rows(shown))
        st.download_button("CSV", sheet, "loupe-claims.csv", "text/csv", key="claims_csv", on_click="ignore")
    for topic in TOPICS:
        here = [claim for claim in topic.claims if claim in shown]
        if here:
            st.subheader(topic.title, anchor=topic.id)
            for claim in here:
                _claim(claim)


def _asked_claim() -> Claim | None:
    asked = st.query_params.get(CLAIM, "")
    if not asked:
        return None
    found = next((claim for claim in CLAIMS if claim.id == asked), None)
    if found is None:
        st.text(f"There is no claim {asked[:60]!r}. All are shown.")
        return None
    st.query_params[CLAIM] = found.id  # a link from this very page tells the server, and not the address bar
    return found


def _show_all() -> None:
    st.query_params.pop(CLAIM, None)


def _chosen() -> list[Claim]:
    """The claims that pass the filters."""
    with st.container(horizontal=True, vertical_alignment="bottom", key="claim_filters"):
        topic = controls.choice("Topic", [ALL, *(topic.title for topic in TOPICS)], url="topic", default=ALL)
        verdict = controls.choice("Verdict", [ALL, *VERDICTS], url="verdict", default=ALL)
        search = controls.text("Search", url="q", most=100)
        runs = controls.switch("Only what can be run here", url="run")
    return [
        claim
        for one in TOPICS
        for claim in one.claims
        if topic in (ALL, one.title)
        and verdict in (ALL, claim.verdict)
        and (claim.measure or not runs)
        and words.matches(claim, search)
    ]


def _count(shown: list[Claim]) -> str:
    if not shown:
        return "No claim is like that. Take a filter off, or search for fewer words."
    by_verdict = [(verdict, sum(claim.verdict == verdict for claim in shown)) for verdict in VERDICTS]
    parts = ", ".join(f"{count} {verdict}" for verdict, count in by_verdict if count)
    return f"{len(shown)} of {len(CLAIMS)} claims: {parts}."


def _claim(claim: Claim) -> None:
    with st.container(border=True, gap="xsmall", key=f"claim_{claim.id}"):
        with st.container(horizontal=True, vertical_alignment="center"):
            st.markdown(f"**{escaped(claim.said)}**", width="stretch")
            st.badge(claim.verdict, icon=ICONS[claim.verdict], color=COLOURS[claim.verdict])  # type: ignore[arg-type]
        st.text(claim.because)
        _numbers(claim)
        if claim.measure:
            _run(claim)
        _foot(claim)


def _numbers(claim: Claim) -> None:
    numbers = claim.numbers
    if numbers:
        with st.container(horizontal=True, key=f"numbers_{claim.id}", gap="medium"):
            for number in numbers:
                st.markdown(
                    f":small[:gray[{escaped(number.what)}]]  \n**{escaped(words.number_words(number))}**",
                    width="content",
                )
    given = words.input_words(claim)
    sentence = f"{claim.formula}, with {given}" if given else claim.formula
    st.caption(f"{'computed now' if numbers else 'as a formula'}: {escaped(sentence)}")


def _run(claim: Claim) -> None:
    """The claim on the loaded model: a button, its progress, what was measured."""
    st.caption(escaped(measured.CHECK_WORDS[claim.measure].does))
    finding = progress.task(f"run_{claim.id}", "Run it on the loaded model", functools.partial(_begin, claim.measure))
    if finding is None:
        return
    outcome = "Held here" if finding.holds != claim.is_contrary else "Did not hold here"
    st.markdown(f"**{outcome}.** {escaped(finding.verdict)}")
    st.table(
        [{"measured": one.what, "value": words.number_words(words.as_number(one))} for one in finding.readings],
        hide_index=True,
    )
    shell.source("measured", finding.measured)


def _begin(name: str, report: progress.TaskProgress) -> Future[Finding]:
    engine = live.engine()
    if engine is None:
        raise LoupeError("There is no model to run it on.")
    return measured.begin(engine, name, runtime().hosting, report)


def _foot(claim: Claim) -> None:
    with st.container(horizontal=True, vertical_alignment="center", key=f"foot_{claim.id}"):
        name = escaped(claim.source.name)
        link = f"[{name}]({claim.source.url})" if claim.source.url else name
        more = "".join(f" · {escaped(source)}" for source in claim.sources)
        st.caption(f"source: {link}{more}", width="stretch")
        if claim.see is not None:
            _try_it(claim.see)
        catalogue.link(catalogue.CLAIMS.url, "Link", **{CLAIM: claim.id})


def _try_it(see: See) -> None:
    if see.url == STEP:
        st.page_link(st.Page(step.page, title="Step", default=True), label="Try it", query_params=see.controls or None)
    else:
        catalogue.link(see.url, "Try it", **see.controls)
