"""Run a server and end it where its health check keeps failing, so that whoever restarts it does.

    python deploy/watched.py python -m streamlit run app.py ...

Docker marks a container unhealthy and leaves it as it is; one that ends is started again (`--restart unless-stopped`).
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
import urllib.request

PORT = int(os.environ.get("STREAMLIT_SERVER_PORT") or 8501)
BASE = os.environ.get("STREAMLIT_SERVER_BASE_URL_PATH", "").strip("/")
URL = f"http://127.0.0.1:{PORT}{'/' + BASE if BASE else ''}/_stcore/health"
EVERY_S = float(os.environ.get("WATCH_EVERY_S") or 30)
PATIENCE_S = 10.0  # for one answer
FAILURES = 3  # in a row
STARTS_S = 10 * EVERY_S  # before the first answer: importing a model takes minutes


def is_well() -> bool:
    try:
        with urllib.request.urlopen(URL, timeout=PATIENCE_S) as answer:
            return bool(answer.status == 200)
    except OSError:
        return False


def watch(server: subprocess.Popen[bytes]) -> int:
    """Wait for the server's end; bring it about where it stays unwell. Returns what to exit with."""
    began, answered, failures = time.monotonic(), False, 0
    while True:
        try:
            return server.wait(timeout=EVERY_S)
        except subprocess.TimeoutExpired:
            pass
        well = is_well()
        answered = answered or well
        starting = not answered and time.monotonic() - began < STARTS_S
        failures = 0 if well or starting else failures + 1
        if failures >= FAILURES:
            print(f"{URL} failed {failures} times in a row: the server is ended", file=sys.stderr, flush=True)
            server.kill()  # what hangs takes no polite word
            server.wait()
            return 1


def main() -> int:
    server = subprocess.Popen(sys.argv[1:])
    signal.signal(signal.SIGTERM, lambda *_: server.terminate())
    signal.signal(signal.SIGINT, lambda *_: server.send_signal(signal.SIGINT))
    return watch(server)


if __name__ == "__main__":
    sys.exit(main())
