"""`make run`: the port is checked first, and a refusal says what to type instead."""

from __future__ import annotations

import os
import socket
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from engine.prepare import TerminalProgress
from explorer import launch


@pytest.fixture
def busy_port() -> Iterator[int]:
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        listener.listen()
        yield listener.getsockname()[1]


def start(*arguments: str, **environment: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "explorer.launch", *arguments]
    return subprocess.run(command, capture_output=True, text=True, timeout=60, env={**os.environ, **environment})


def test_a_busy_port_is_refused_with_the_command_that_works(busy_port: int) -> None:
    done = start("--port", str(busy_port))
    assert done.returncode == 1
    assert f"make run PORT={busy_port + 1}" in done.stderr


@pytest.mark.parametrize("port", ["0", "65536", "-1", "http", "8501a"])
def test_what_is_no_port_is_refused(port: str) -> None:
    done = start("--port", port)
    assert done.returncode == 2
    assert "a port is a number from 1 to 65535" in done.stderr


def test_a_model_that_is_not_there_ends_the_start_with_its_message(tmp_path: Path) -> None:
    done = start("--port", str(free_port()), LOUPE_MODEL=str(tmp_path / "gone.gguf"))
    assert done.returncode == 1
    assert "no folder or file" in done.stderr
    assert "Traceback" not in done.stderr


def test_the_app_is_started_from_its_folder_so_that_its_settings_are_read(monkeypatch: pytest.MonkeyPatch) -> None:
    seen: list[object] = []
    monkeypatch.setattr(sys, "argv", ["launch", "--port", str(free_port())])
    monkeypatch.setattr(launch, "prepare_or_exit", lambda: seen.append("model"))
    monkeypatch.setattr(os, "chdir", seen.append)
    monkeypatch.setattr(os, "execv", lambda path, command: seen.append(command))
    launch.main()
    model, folder, command = seen
    assert model == "model"  # before the app starts, not on its first page view
    assert isinstance(folder, Path)
    assert (folder / ".streamlit" / "config.toml").is_file()
    assert command[:5] == [sys.executable, "-m", "streamlit", "run", str(folder / "app.py")]  # type: ignore[index]


def test_progress_that_no_terminal_shows_is_one_line_a_stage(capsys: pytest.CaptureFixture[str]) -> None:
    with TerminalProgress() as progress:
        for text, done in (("Reading", 0.1), ("Reading", 0.2), ("Saving", 0.9)):
            progress(text, done)
    assert capsys.readouterr().err == "Reading\nSaving\n"


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port
