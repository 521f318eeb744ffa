"""What is shipped for hosting says what the code does: settings, paths, and who may reach what."""

from __future__ import annotations

import re
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
    assert shipped == Hosting(mode="hosted", metrics_port=9177, **IN_A_CLASS)


def test_the_guide_lists_every_setting_and_no_other():
    listed = set(re.findall(r"^\| `(LOUPE_\w+)`", GUIDE, re.MULTILINE))
    assert listed == NAMES


def test_the_guides_defaults_are_the_codes():
    rows = dict(re.findall(r"^\| `LOUPE_(\w+)` \| ([\d,.]+) \|", GUIDE, re.MULTILINE))
    told = {name.lower(): float(value.replace(",", "")) for name, value in rows.items()}
    assert told == {**IN_A_CLASS, "grace_s": Hosting().grace_s}


def test_every_variable_that_the_shipped_files_set_is_read():
    shipped = " ".join(path.read_text() for path in DEPLOY.iterdir())
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
    for name in ("Dockerfile", "loupe-health.service"):
        assert PATH in (DEPLOY / name).read_text()


def test_the_container_runs_without_rights():
    text = (DEPLOY / "Dockerfile").read_text()
    assert re.search(r"^USER loupe$", text, re.MULTILINE)
    assert text.index("USER loupe") < text.index("CMD")


def test_loupe_itself_listens_to_the_proxy_alone():
    assert "--server.address=127.0.0.1" in (DEPLOY / "loupe.service").read_text()
    proxy = (DEPLOY / "nginx.conf").read_text()
    assert "proxy_set_header Upgrade $http_upgrade" in proxy
    assert re.search(r"location = /_stcore/metrics \{ return 404; \}", proxy)
