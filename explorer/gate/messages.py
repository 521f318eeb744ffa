"""Which messages a browser may send over Streamlit's own socket, how large, and how many.

Streamlit acts on every kind it knows. One of them empties the caches of all visitors, others are there for uploads and
for those who develop Streamlit. A page of ours sends two kinds; what is not listed as needed is refused, so a kind that
a later Streamlit adds is refused until somebody has looked at it.
"""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType

from google.protobuf.message import DecodeError
from streamlit.proto.BackMsg_pb2 import BackMsg

NEEDED = frozenset({"rerun_script", "stop_script"})  # a page that opens or changes; the Stop button of a long run
NOT_NEEDED: Mapping[str, str] = MappingProxyType(
    {
        "clear_cache": "empties every visitor's caches",
        "set_run_on_save": "for whoever edits the app: files are not watched",
        "load_git_info": "for whoever edits the app",
        "debug_disconnect_websocket": "for Streamlit's own tests",
        "debug_shutdown_runtime": "for Streamlit's own tests: ends the server",
        "file_urls_request": "nothing here uploads",
        "app_heartbeat": "for pages that embed an app",
        "backend_operation_request": "for whoever edits the app, and for tables far larger than any here",
    }
)

MESSAGES_A_S = 30.0  # a slider that is dragged sends about ten a second
MESSAGES_AT_ONCE = 150.0
BYTES_A_S = 1_000_000.0  # reading one large value takes the interpreter from everybody
BYTES_AT_ONCE = 4_000_000.0

TOO_BIG, NOT_OURS, UNREADABLE = 1009, 1003, 1002  # websocket close codes


def kind_of(data: bytes) -> str | None:
    """The kind of a message; None where it is none."""
    message = BackMsg()
    try:
        message.ParseFromString(data)
    except DecodeError:
        return None
    return message.WhichOneof("type") or ""
