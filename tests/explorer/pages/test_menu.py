"""The menu: every page has an address of its own, and the host's page is not for everybody to see."""

from __future__ import annotations

import json
from importlib import import_module

import pytest
from streamlit.testing.v1 import AppTest

from explorer.labs import catalogue
from explorer.labs.catalogue import Lab


def shown() -> None:
    import streamlit as st

    from explorer.pages import menu

    found = menu.pages(has_class_page=True)
    st.json([[heading, page.title, page.url_path, page.visibility] for heading in found for page in found[heading]])


@pytest.fixture(scope="module")
def entries() -> list[list[str]]:
    """Heading, title, address and visibility of each page; a page can only be made inside a run of the app."""
    app = AppTest.from_function(shown).run()
    assert not app.exception
    found: list[list[str]] = json.loads(app.json[0].value)
    return found


def test_the_menu_names_the_step_page_the_lessons_the_claims_and_every_lab(entries):
    assert [(heading, title) for heading, title, _, visibility in entries if visibility == "visible"] == [
        ("", "Step"),
        ("", "Lessons"),
        ("", "Fact check"),
        ("", "Glossary"),
        ("Labs", "Roofline"),
        ("Labs", "With and without the KV cache"),
        ("Labs", "Prefill and decode"),
        ("Labs", "KV cache memory"),
        ("Labs", "FlashAttention, tile by tile"),
    ]


def test_no_two_pages_share_an_address(entries):
    addresses = [address for _, _, address, _ in entries]
    assert len(set(addresses)) == len(addresses) == 14


def test_the_hosts_page_and_the_addresses_of_before_have_no_entry(entries):
    assert [(title, address) for _, title, address, visibility in entries if visibility == "hidden"] == [
        ("The class", "class"),
        ("Roofline", "floor"),
        ("KV cache memory", "library"),
        ("FlashAttention, tile by tile", "tiles"),
        ("Fact check", "claims"),
    ]


@pytest.mark.parametrize("lab", [*catalogue.LABS, catalogue.CLAIMS], ids=lambda lab: lab.url)
def test_the_module_behind_an_entry_is_there_and_has_a_page(lab: Lab):
    assert callable(import_module(lab.module).page)
