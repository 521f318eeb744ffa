"""How large a message from a browser and one to it may be.

Streamlit has one setting for both directions, `server.maxMessageSize`, and its server reads nothing longer. It is set
to what may come in (.streamlit/config.toml). What goes out is ours and may be longer: a step of a large model with all
its attention is tens of megabytes.
"""

from __future__ import annotations

from streamlit.runtime import runtime_util

MOST_BYTES_IN = 2_000_000  # of one message; a saved run of 100,000 tokens is 0.7 MB
MOST_BYTES_OUT = 200_000_000


def allow_large_frames() -> None:
    """Once the server listens, which has read the setting by then."""
    runtime_util._max_message_size_bytes = MOST_BYTES_OUT
