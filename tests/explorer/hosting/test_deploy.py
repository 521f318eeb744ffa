"""What is shipped for hosting says what the code does: settings, paths, and who may reach what."""

from __future__ import annotations

import os
import re
import socket
import subprocess
import sys
from dataclasses import fields
from pathlib import Path

from explorer.hosting.health_route import PATH
from explorer.hosting.limits import IN_A_CLASS, Hosting, from_environment

ROOT = Path(__file__).resolve().parents[3]
DEPLOY = ROOT / "deploy"
GUIDE = (ROOT / "docs" / "hosting.md").read_text()
NAMES = {f"LOUPE_{known.name.upper()}" for known in fields(Hosting)}


def test_the_shipped_settings_are_the_defaults_of_a_class():
    shipped = from_environment({"LOUPE_CONFIG": str(DEPLOY / "class.toml")})
    assert shipped == Hosting(mode="hosted", metrics_port=9177, hosts="loupe.example.org", **IN_A_CLASS)


def test_the_guide_lists_every_setting_and_no_other():
    listed = set(re.findall(r"^\| `(LOUPE_\w+)`", GUIDE, re.MULTILINE))
    assert listed == NAMES


def test_the_guides_defaults_are_the_codes():
    rows = dict(re.findall(r"^\| `LOUPE_(\w+)` \| ([\d,.]+) \|", GUIDE, re.MULTILINE))
    told = {name.lower(): float(value.replace(",", "")) for name, value in rows.items()}
    assert told == {**IN_A_CLASS, "grace_s": Hosting().grace_s}


def test_every_variable_that_the_shipped_files_set_is_read():
    shipped = " ".join(path.read_text() for path in DEPLOY.iterdir() if path.is_file())
    assert set(re.findall(r"LOUPE_[A-Z]\w+", shipped)) <= NAMES | {"LOUPE_CONFIG", "LOUPE_CACHE"}


def test_every_number_the_guide_names_is_served(server):
    from prometheus_client import generate_latest

    from explorer.hosting.prometheus import registry_of

    text = generate_latest(registry_of(server)).decode()
    named = set(re.findall(r"`(loupe_\w+)`", GUIDE))
    served = {name.removesuffix("_total") for name in re.findall(r"^# TYPE (\w+) (?!\w*created)", text, re.MULTILINE)}
    assert {name.removesuffix("_total") for name in named} == served


def test_both_starts_run_the_app_that_asks_its_engine():
    for name in ("Dockerfile", "loupe.service"):
        text = (DEPLOY / name).read_text()
        assert "app.py" in text
    for name in ("watched.py", "loupe-health.service"):
        assert PATH.strip("/") in (DEPLOY / name).read_text()


def test_the_container_runs_without_rights():
    text = (DEPLOY / "Dockerfile").read_text()
    assert re.search(r"^USER loupe$", text, re.MULTILINE)
    assert text.index("USER loupe") < text.index("CMD")


def test_loupe_itself_listens_to_the_proxy_alone():
    assert "--server.address=127.0.0.1" in (DEPLOY / "loupe.service").read_text()
    proxy = (DEPLOY / "nginx.conf").read_text()
    assert "proxy_set_header Upgrade $http_upgrade" in proxy
    assert "proxy_set_header Host $http_host;" in proxy  # `$host` has no port, and a page's Origin has
    assert "proxy_set_header X-Forwarded-For $remote_addr;" in proxy
    assert "limit_conn " in proxy


def test_a_class_under_a_path_is_asked_for_its_health_there():
    unit = (DEPLOY / "loupe-health.service").read_text()
    found = re.search(r"^ExecStart=/bin/sh -c '(/usr/bin/curl [^|]*)\|\|", unit, re.MULTILINE)
    assert found is not None
    said = found[1].replace("$$", "$").replace("/usr/bin/curl", "echo")  # as systemd reads it
    for base, path in (("", ""), ("loupe", "/loupe")):
        asked = subprocess.run(
            ["/bin/sh", "-c", said],
            env={"STREAMLIT_SERVER_BASE_URL_PATH": base},
            capture_output=True,
            text=True,
            check=True,
        )
        assert asked.stdout.split()[-1] == f"http://127.0.0.1:8501{path}{PATH}"


SICK_AFTER_TWO = """
import http.server, os
class Answer(http.server.BaseHTTPRequestHandler):
    asked = []
    def do_GET(self):
        self.asked.append(self.path)
        assert self.path == "/loupe/_stcore/health"
        self.send_response(200 if len(self.asked) <= 2 else 503)
        self.end_headers()
    def log_message(self, *_): pass
http.server.HTTPServer(("127.0.0.1", int(os.environ["STREAMLIT_SERVER_PORT"])), Answer).serve_forever()
"""


def watched(server: str) -> subprocess.Popen[str]:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    here = {"STREAMLIT_SERVER_PORT": str(port), "STREAMLIT_SERVER_BASE_URL_PATH": "loupe", "WATCH_EVERY_S": "0.3"}
    command = [sys.executable, str(DEPLOY / "watched.py"), sys.executable, "-c", server]
    return subprocess.Popen(command, env={**os.environ, **here}, stderr=subprocess.PIPE, text=True)


def test_a_container_whose_server_stays_unwell_ends_so_that_it_is_started_again():
    with watched(SICK_AFTER_TWO) as process:
        _, said = process.communicate(timeout=60)
    assert process.returncode == 1
    assert "failed 3 times in a row" in said


def test_a_container_ends_with_its_server_and_as_it_did():
    with watched("raise SystemExit(7)") as process:
        assert process.wait(timeout=60) == 7
