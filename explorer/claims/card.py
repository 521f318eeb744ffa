"""One claim on the page: a line that opens to its card, with its numbers, their sources, and a run of it here."""

from __future__ import annotations

import functools
from concurrent.futures import Future

import streamlit as st

from engine.errors import LoupeError
from engine.studies.claim_records import Finding
from explorer.claims import measured, words
from explorer.claims.claim import STEP, Claim, See, Verdict
from explorer.hosting.runtime import runtime
from explorer.labs import catalogue, charts, live, progress, shell
from explorer.labs.shell import escaped
from explorer.pages import step
from explorer.say import words_beside

say = words_beside(__file__)

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


def line(claim: Claim, number: str = "", *, place: str) -> None:
    """The claim, its verdict and the number that decides it, as Markdown; the card is drawn when it is opened.

    place  tells apart the same claim at two places of the page
    """
    badge = f":{COLOURS[claim.verdict]}-badge[{ICONS[claim.verdict]} {claim.verdict}]"
    after = f" :gray[{number}]" if number else ""
    part = shell.details(f"**{escaped(claim.said)}** {badge}{after}", key=f"{place}_{claim.id}")
    if part:
        with part:
            _body(claim, place)


def card(claim: Claim) -> None:
    """The whole card, open."""
    with st.container(border=True, gap="xsmall", key=f"claim_{claim.id}"):
        with st.container(horizontal=True, vertical_alignment="center"):
            st.markdown(f"**{escaped(claim.said)}**", width="stretch")
            st.badge(claim.verdict, icon=ICONS[claim.verdict], color=COLOURS[claim.verdict])  # type: ignore[arg-type]
        _body(claim, "alone")


def _body(claim: Claim, place: str) -> None:
    st.text(claim.because)
    _numbers(claim, place)
    if claim.measure:
        _run(claim, place)
    _foot(claim, place)


def _numbers(claim: Claim, place: str) -> None:
    numbers = claim.numbers
    if numbers:
        with st.container(horizontal=True, key=f"{place}_numbers_{claim.id}", gap="medium"):
            for number in numbers:
                st.markdown(
                    f":small[:gray[{escaped(number.what)}]]  \n**{escaped(words.number_words(number))}**",
                    width="content",
                )
    given = words.input_words(claim)
    formula = say("card.with_inputs", formula=claim.formula, inputs=given) if given else claim.formula
    st.caption(escaped(say("card.computed", formula=formula) if numbers else say("card.formula", formula=formula)))


def _run(claim: Claim, place: str) -> None:
    """The claim on the loaded model: a button, its progress, what was measured."""
    st.caption(escaped(measured.does(claim.measure)))
    finding = progress.task(f"{place}_run_{claim.id}", say("card.run"), functools.partial(_begin, claim.measure))
    if finding is None:
        return
    outcome = say("card.held") if finding.holds != claim.is_contrary else say("card.did_not_hold")
    st.markdown(f"**{escaped(outcome)}** {escaped(finding.verdict)}")
    rows = [
        {say("card.measured"): one.what, say("card.value"): words.number_words(words.as_number(one))}
        for one in finding.readings
    ]
    charts.table(rows, name=f"{place} {claim.id}")
    shell.source("measured", finding.measured)


def _begin(name: str, report: progress.TaskProgress) -> Future[Finding]:
    engine = live.engine()
    if engine is None:
        raise LoupeError(say("card.no_model"))
    return measured.begin(engine, name, runtime().hosting, report)


def _foot(claim: Claim, place: str) -> None:
    with st.container(horizontal=True, vertical_alignment="center", key=f"{place}_foot_{claim.id}"):
        name = escaped(claim.source.name)
        link = f"[{name}]({claim.source.url})" if claim.source.url else name
        more = "".join(f" · {escaped(source)}" for source in claim.sources)
        st.caption(say("card.source", source=f"{link}{more}"), width="stretch")
        if claim.see is not None:
            _try_it(claim.see)
        catalogue.link(catalogue.CLAIMS.url, say("card.link"), **{CLAIM: claim.id})


def _try_it(see: See) -> None:
    if see.url == STEP:
        page = st.Page(step.page, title="Step", default=True)
        st.page_link(page, label=say("card.try"), query_params=see.controls or None)
    else:
        catalogue.link(see.url, say("card.try"), **see.controls)
