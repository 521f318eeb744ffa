"""No watching of source files. Streamlit has a setting for it (.streamlit/config.toml) that it forgets when a browser
comes back after a lost connection: from then on every run of a page would walk through all loaded modules.
"""

from __future__ import annotations

from streamlit import config
from streamlit.runtime.app_session import AppSession


def keep_files_unwatched() -> None:
    """Hold Streamlit to `server.fileWatcherType = "none"` for good."""
    watch = AppSession.register_file_watchers

    def unless_told_not_to(session: AppSession) -> None:
        if config.get_option("server.fileWatcherType") != "none":
            watch(session)

    AppSession.register_file_watchers = unless_told_not_to  # type: ignore[assignment, method-assign]
