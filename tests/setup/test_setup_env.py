"""Set-up runs once, again when the requirements change, and says what is wrong in words."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from tools import browser, setup_env


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> list[list[str]]:
    """A project folder with requirements and no .venv; returns the commands that set-up would have run."""
    (tmp_path / "requirements.txt").write_text("a\n")
    (tmp_path / "requirements-dev.txt").write_text("b\n")
    commands: list[list[str]] = []

    def run(command: list[str]) -> None:
        commands.append(command)
        if "venv" in command:
            (tmp_path / ".venv" / "bin").mkdir(parents=True)
            (tmp_path / ".venv" / "bin" / "python").symlink_to(sys.executable)

    monkeypatch.setattr(setup_env, "ROOT", tmp_path)
    monkeypatch.setattr(setup_env, "VENV", tmp_path / ".venv")
    monkeypatch.setattr(setup_env, "VENV_PYTHON", tmp_path / ".venv" / "bin" / "python")
    monkeypatch.setattr(setup_env, "run", run)
    monkeypatch.setattr(browser, "ensure_browser", lambda _: None)
    return commands


def set_up(purpose: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "argv", ["setup_env.py", purpose])
    setup_env.main()


def test_the_second_time_nothing_is_run(project: list[list[str]], monkeypatch: pytest.MonkeyPatch) -> None:
    set_up("run", monkeypatch)
    assert len(project) == 2  # the environment, the packages
    set_up("run", monkeypatch)
    assert len(project) == 2


def test_what_the_tests_need_covers_what_the_app_needs(
    project: list[list[str]], monkeypatch: pytest.MonkeyPatch
) -> None:
    set_up("test", monkeypatch)
    assert project[-1][-1].endswith("requirements-dev.txt")
    set_up("run", monkeypatch)
    assert len(project) == 2


def test_what_the_app_needs_is_not_enough_for_the_tests(
    project: list[list[str]], monkeypatch: pytest.MonkeyPatch
) -> None:
    set_up("run", monkeypatch)
    set_up("test", monkeypatch)
    assert len(project) == 3  # more packages, the same environment


def test_changed_requirements_are_installed(project: list[list[str]], monkeypatch: pytest.MonkeyPatch) -> None:
    set_up("run", monkeypatch)
    (setup_env.ROOT / "requirements.txt").write_text("a==2\n")
    set_up("run", monkeypatch)
    assert "install" in project[-1]
    assert len(project) == 3


def test_a_failed_install_leaves_no_stamp(project: list[list[str]], monkeypatch: pytest.MonkeyPatch) -> None:
    whole = setup_env.run

    def failing(command: list[str]) -> None:
        whole(command)
        if "install" in command:
            sys.exit("no network")

    monkeypatch.setattr(setup_env, "run", failing)
    with pytest.raises(SystemExit):
        set_up("run", monkeypatch)
    assert not setup_env.is_ready("run")


def test_an_environment_whose_python_is_gone_is_made_again(
    project: list[list[str]], monkeypatch: pytest.MonkeyPatch
) -> None:
    set_up("run", monkeypatch)
    setup_env.VENV_PYTHON.unlink()
    assert not setup_env.is_ready("run")


def test_an_old_python_is_refused_with_the_way_out(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "version_info", (3, 9, 6))
    with pytest.raises(SystemExit, match=r"needs Python 3\.11 or newer; .* is 3\.9\.6\.\n.*PYTHON="):
        setup_env.check_python()


def test_a_python_without_ensurepip_says_which_package_brings_it(
    project: list[list[str]], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "ensurepip", None)  # importing it now fails
    with pytest.raises(SystemExit, match="apt-get install python3-venv"):
        setup_env.make_venv()


def test_a_named_browser_goes_before_any_other(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    named = tmp_path / "my-chromium"
    named.write_text("#!/bin/sh\n")
    named.chmod(0o755)
    monkeypatch.setenv("LOUPE_CHROMIUM", str(named))
    assert browser.require_browser() == str(named)


@pytest.mark.parametrize("named", ["", "/nowhere/chromium"])
def test_a_missing_browser_is_an_error_that_says_how_to_install_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, named: str
) -> None:
    monkeypatch.setenv("LOUPE_CHROMIUM", named)
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.setenv("PLAYWRIGHT_BROWSERS_PATH", str(tmp_path))
    with pytest.raises(browser.NoBrowser, match="apt-get install chromium"):
        browser.require_browser()


def test_playwrights_own_browser_is_found(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    own = tmp_path / "chromium-1200" / "chrome-linux" / "chrome"
    own.parent.mkdir(parents=True)
    own.write_text("#!/bin/sh\n")
    own.chmod(0o755)
    monkeypatch.delenv("LOUPE_CHROMIUM", raising=False)
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.setenv("PLAYWRIGHT_BROWSERS_PATH", str(tmp_path))
    assert browser.find_browser() == str(own)
