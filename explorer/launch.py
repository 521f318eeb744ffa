"""What `make run` starts: check the port, import the model with a bar in the terminal, hand over to Streamlit.

The model is imported here and not on the first page view, so that whoever waits sees what for.
"""

from __future__ import annotations

import argparse
import os
import socket
import sys
from pathlib import Path

from engine.errors import InvalidSettings
from engine.prepare import prepare_or_exit
from explorer.hosting.limits import from_environment

APP = Path(__file__).resolve().parent.parent / "app.py"


def main() -> None:
    options = _options()
    try:
        from_environment(os.environ)
    except InvalidSettings as error:
        sys.exit(str(error))
    if not _is_free(options.host, options.port):
        sys.exit(
            f"Port {options.port} is taken, maybe by a Loupe that still runs: http://localhost:{options.port}\n"
            f"Use that one, or another port: make run PORT={options.port + 1}"
        )
    prepare_or_exit()
    print(f"Loupe runs on http://localhost:{options.port}   (Ctrl-C stops it)", flush=True)
    os.chdir(APP.parent)  # Streamlit reads .streamlit/config.toml from where it is started
    command = [sys.executable, "-m", "streamlit", "run", str(APP)]
    command += ["--server.port", str(options.port), "--server.address", options.host]
    os.execv(sys.executable, command)


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m explorer.launch", description="Start Loupe.")
    parser.add_argument("--port", type=_port, default=8501, help="where to serve it (default 8501)")
    parser.add_argument("--host", default="localhost", help="address to listen on; 0.0.0.0 lets others reach it")
    return parser.parse_args()


def _port(text: str) -> int:
    if not (text.isascii() and text.isdigit() and 1 <= int(text) <= 65535):
        raise argparse.ArgumentTypeError(f"a port is a number from 1 to 65535, not {text!r}")
    return int(text)


def _is_free(host: str, port: int) -> bool:
    """True where no address of the host has a listener. One that this machine lacks (::1, say) cannot have any."""
    for family, kind, protocol, _, address in socket.getaddrinfo(host, port, type=socket.SOCK_STREAM):
        with socket.socket(family, kind, protocol) as probe:
            probe.settimeout(1.0)
            if probe.connect_ex(address) == 0:
                return False
    return True


if __name__ == "__main__":
    main()
