"""What a thing is, in place: each panel, station, slider, stage and stop rule leads to a term that the glossary has."""

from __future__ import annotations

import json
import re

import pytest

from explorer.components.step_page import page_script
from explorer.glossary.glossary import terms
from tests.explorer.components.js_page import SOURCES

NAMES = {term.name for term in terms()}
USED = [
    (path.rpartition("/")[2], name)
    for path, source in SOURCES.items()
    if path.startswith("step_page/panels/")
    for name in re.findall(r"\bterm: '([^']+)'", source)
]


@pytest.mark.parametrize(("script", "name"), USED)
def test_a_term_that_a_panel_names_is_in_the_glossary(script: str, name: str):
    assert name in NAMES


def test_five_panels_five_stations_five_sliders_seven_stages_and_eight_stop_rules_explain_themselves():
    assert len(USED) == 5 + 5 + 5 + 7 + 8


def test_the_page_brings_the_glossary_with_its_scripts():
    first = page_script().split("\n", 1)[0]
    brought = json.loads(first.removeprefix("const GLOSSARY = ").removesuffix(";"))
    assert [(one["name"], one["says"]) for one in brought] == [(term.name, term.says) for term in terms()]
