"""The Claims page: how much of what is often said about the decode loop holds, the ten claims one hears most, and all
others below them, folded by topic. A line opens to the claim's card."""

from __future__ import annotations

from collections.abc import Sequence

import streamlit as st

from explorer.claims import words
from explorer.claims.card import CLAIM, card, line
from explorer.claims.catalogue import CLAIMS, TOPICS
from explorer.claims.claim import VERDICTS, Claim, Topic, Verdict
from explorer.claims.heard import deciding, heard
from explorer.labs import charts, controls, shell
from explorer.say import words_beside

say = words_beside(__file__)

ALL = say("filters.all")


def page() -> None:
    """The answer; then what a link or the filters ask for, or the ten and the topics."""
    shell.lab(say("page.title"), say("page.question"))
    stage = shell.stage()
    with stage.answer:
        shell.answer(_answer(), "computed", say("page.origin"))
    with stage.controls:
        chosen = _chosen()
        shown = list(CLAIMS) if chosen is None else chosen
        sheet = charts.csv_text(words.rows(shown))
        st.download_button(
            say("filters.sheet"), sheet, "loupe-claims.csv", "text/csv", key="claims_csv", on_click="ignore"
        )
    with stage.picture:
        alone = _asked_claim()
        if alone is not None:
            st.button(say("page.back"), key="all_claims", icon=":material/arrow_back:", on_click=_show_all)
            card(alone)
        elif chosen is None:
            _overview()
        else:
            _matches(chosen)


def _answer() -> shell.Answer:
    by_verdict = _by_verdict(CLAIMS)
    numbers = {"all": len(CLAIMS), **{_PLACES[verdict]: by_verdict[verdict] for verdict in VERDICTS}}
    return shell.Answer(say.unfilled("page.answer"), {name: f"{count:,}" for name, count in numbers.items()})


_PLACES: dict[Verdict, str] = {
    "exact": "exact",
    "rounded": "rounded",
    "conditional": "conditional",
    "wrong": "wrong",
    "not verifiable": "unknown",
}  # the answer's


def _asked_claim() -> Claim | None:
    asked = st.query_params.get(CLAIM, "")
    if not asked:
        return None
    found = next((claim for claim in CLAIMS if claim.id == asked), None)
    if found is None:
        st.text(say("page.missing", asked=asked[:60]))
        return None
    st.query_params[CLAIM] = found.id  # a link from this very page tells the server, and not the address bar
    return found


def _show_all() -> None:
    st.query_params.pop(CLAIM, None)


def _chosen() -> list[Claim] | None:
    """The claims that pass the filters; None where none is set."""
    topic = controls.choice(say("filters.topic"), [ALL, *(topic.title for topic in TOPICS)], url="topic", default=ALL)
    verdict = controls.choice(say("filters.verdict"), [ALL, *VERDICTS], url="verdict", default=ALL)
    search = controls.text(say("filters.search"), url="q", most=100)
    runs = controls.switch(say("filters.runs"), url="run")
    if topic == ALL and verdict == ALL and not search.strip() and not runs:
        return None
    return [
        claim
        for one in TOPICS
        for claim in one.claims
        if topic in (ALL, one.title)
        and verdict in (ALL, claim.verdict)
        and (claim.measure or not runs)
        and words.matches(claim, search)
    ]


def _overview() -> None:
    """The ten, and under them every topic, folded."""
    with st.container(key="heard", gap="xsmall"):
        st.subheader(say("page.heard"), anchor=False)
        for claim in heard():
            line(claim, deciding(claim), place="heard")
    with st.container(key="topics", gap="xsmall"):
        st.subheader(say("page.topics", all=len(CLAIMS)), anchor=False)
        for topic in TOPICS:
            _topic(topic)


def _topic(topic: Topic) -> None:
    with st.container(key=f"topic_{topic.id}"):
        st.subheader(topic.title, anchor=topic.id)  # not seen: old links lead to it, and screen readers go by it
        part = shell.details(f"**{topic.title}** :gray[{_count(topic.claims)}]", key=f"fold_{topic.id}")
        if part:
            with part:
                for claim in topic.claims:
                    line(claim, place="topic")


def _matches(shown: Sequence[Claim]) -> None:
    """What the filters leave, under its topics."""
    if not shown:
        st.text(say("page.none"))
        return
    st.text(say("page.matched", shown=len(shown), all=len(CLAIMS), verdicts=_verdicts(shown)))
    with st.container(key="matches", gap="xsmall"):
        for topic in TOPICS:
            here = [claim for claim in topic.claims if claim in shown]
            if here:
                st.subheader(topic.title, anchor=topic.id)
                for claim in here:
                    line(claim, place="match")


def _count(claims: Sequence[Claim]) -> str:
    return say("page.counted", count=len(claims), verdicts=_verdicts(claims))


def _verdicts(claims: Sequence[Claim]) -> str:
    return ", ".join(f"{count} {verdict}" for verdict, count in _by_verdict(claims).items() if count)


def _by_verdict(claims: Sequence[Claim]) -> dict[Verdict, int]:
    return {verdict: sum(claim.verdict == verdict for claim in claims) for verdict in VERDICTS}
