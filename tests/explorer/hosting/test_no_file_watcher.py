"""Streamlit keeps to its own setting about watching files, also where a browser comes back."""

from __future__ import annotations

import pytest
from streamlit.runtime.app_session import AppSession

from explorer.hosting.no_file_watcher import keep_files_unwatched


@pytest.mark.parametrize(("kind", "watched"), [("none", 0), ("auto", 1)])
def test_a_session_that_comes_back_watches_files_only_where_the_setting_says_so(monkeypatch, kind, watched):
    calls: list[object] = []
    monkeypatch.setattr(AppSession, "register_file_watchers", calls.append)
    monkeypatch.setattr("explorer.hosting.no_file_watcher.config.get_option", lambda _: kind)
    keep_files_unwatched()
    AppSession.register_file_watchers(object())  # what Streamlit calls for a session that a browser comes back to
    assert len(calls) == watched
