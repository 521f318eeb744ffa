"""The real app on a free loopback port, for as long as a benchmark needs it."""

from __future__ import annotations

import os
import socket
import subprocess
import sys
import time
import urllib.request
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
PATIENCE_S = 120


STREAMLIT = ("-m", "streamlit", "run", "app.py")


@dataclass(frozen=True, slots=True)
class RunningApp:
    """A server that answers, and the process it is."""

    url: str
    pid: int


@contextmanager
def running_app() -> Iterator[str]:
    """`streamlit run app.py`; yields its address, ends it afterwards."""
    with started(STREAMLIT, {"LOUPE_MODEL": ""}) as app:
        yield app.url


@contextmanager
def started(arguments: Sequence[str], environment: Mapping[str, str], under: str = "") -> Iterator[RunningApp]:
    """Python with these arguments and Streamlit's own for a free loopback port; ends it afterwards.

    under  the path it is told to serve under
    """
    port = _free_port()
    command = [sys.executable, *arguments, f"--server.port={port}", "--server.address=127.0.0.1"]
    quiet = subprocess.DEVNULL
    with subprocess.Popen(command, cwd=ROOT, env={**os.environ, **environment}, stdout=quiet, stderr=quiet) as app:
        try:
            _wait(f"http://127.0.0.1:{port}{under}/_stcore/health", app)
            yield RunningApp(f"http://127.0.0.1:{port}", app.pid)
        finally:
            app.terminate()


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def _wait(url: str, app: subprocess.Popen[bytes]) -> None:
    deadline = time.monotonic() + PATIENCE_S
    while time.monotonic() < deadline:
        if app.poll() is not None:
            raise RuntimeError("the app ended before it was ready")
        try:
            with urllib.request.urlopen(url, timeout=2) as answer:
                if answer.status == 200:
                    return
        except OSError:
            time.sleep(0.2)
    raise RuntimeError(f"the app did not answer within {PATIENCE_S} s")
