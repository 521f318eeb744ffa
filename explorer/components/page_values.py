"""What the Step page's scripts find in front of them: the glossary, a recorded step, the schema of recordings."""

from __future__ import annotations

import base64
import json

from explorer.glossary.glossary import terms
from explorer.recordings.reading import SCHEMA
from explorer.recordings.shipped import first_step


def page_values() -> str:
    """Declarations of GLOSSARY, FIRST_STEP and RECORDING_SCHEMA."""
    values = {
        "GLOSSARY": [{"name": t.name, "says": t.says, "how": t.how, "where": t.where} for t in terms()],
        "FIRST_STEP": base64.b64encode(first_step()).decode(),
        "RECORDING_SCHEMA": json.loads(SCHEMA.read_text(encoding="utf-8")),
    }
    return "".join(f"const {name} = {json.dumps(value)};\n" for name, value in values.items())
