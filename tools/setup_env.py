"""Make the project's own Python environment in .venv, once.

Runs on whatever `python3` is there, so it uses the standard library alone and must stay readable for
an old Python: that one only has to reach the message that it is too old. A finished set-up leaves a
stamp named for the content of the requirements; while that matches, this returns at once.
"""

from __future__ import annotations

import hashlib
import shutil
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
VENV = ROOT / ".venv"
VENV_PYTHON = VENV / "bin" / "python"
REQUIREMENTS = {"run": ("requirements.txt",), "test": ("requirements.txt", "requirements-dev.txt")}
OLDEST = (3, 11)


def main() -> None:
    if len(sys.argv) != 2 or sys.argv[1] not in REQUIREMENTS:
        sys.exit("usage: python3 tools/setup_env.py run|test")
    purpose = sys.argv[1]
    if not is_ready(purpose):
        check_python()
        make_venv()
        install(purpose)
        stamp(purpose).touch()
    if purpose == "test":
        sys.path.insert(0, str(ROOT))
        from tools.browser import ensure_browser

        ensure_browser(VENV_PYTHON)


def is_ready(purpose: str) -> bool:
    """True where .venv works and holds at least what `purpose` asks for; the tests' packages include the app's."""
    wanted = ("run", "test") if purpose == "run" else ("test",)
    return VENV_PYTHON.exists() and any(stamp(name).exists() for name in wanted)


def stamp(purpose: str) -> Path:
    """The file whose presence says: .venv holds what these requirements ask for."""
    content = b"".join((ROOT / name).read_bytes() for name in REQUIREMENTS[purpose])
    return VENV / f".loupe-{purpose}-{hashlib.sha256(content).hexdigest()[:16]}"


def check_python() -> None:
    if sys.version_info < OLDEST:
        version = ".".join(str(part) for part in sys.version_info[:3])
        sys.exit(
            f"Loupe needs Python {OLDEST[0]}.{OLDEST[1]} or newer; {sys.executable} is {version}.\n"
            "Name a newer one: make run PYTHON=python3.12"
        )


def make_venv() -> None:
    """Create .venv, or create it anew where an earlier try or a moved folder left it without a working pip."""
    if has_pip():
        return
    try:
        import ensurepip  # noqa: F401
    except ImportError:
        sys.exit(
            f"{sys.executable} cannot make a virtual environment: it has no ensurepip.\n"
            "On Debian or Ubuntu: apt-get install python3-venv   Then run make again."
        )
    print("Making .venv", flush=True)
    shutil.rmtree(VENV, ignore_errors=True)
    run([sys.executable, "-m", "venv", str(VENV)])


def has_pip() -> bool:
    if not VENV_PYTHON.exists():
        return False
    return subprocess.run([str(VENV_PYTHON), "-m", "pip", "--version"], capture_output=True).returncode == 0


def install(purpose: str) -> None:
    print("Installing packages (the first time this takes a few minutes)", flush=True)
    command = [str(VENV_PYTHON), "-m", "pip", "install", "-qq", "--disable-pip-version-check"]
    for name in REQUIREMENTS[purpose]:
        command += ["-r", str(ROOT / name)]
    run(command)


def run(command: list[str]) -> None:
    if subprocess.run(command, cwd=ROOT).returncode != 0:
        sys.exit(f"This failed: {' '.join(command)}\nPut right what it says above, then run make again.")


if __name__ == "__main__":
    main()
