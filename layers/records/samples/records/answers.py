"""Say what is in the files of the story, and what the model answers about them."""

from __future__ import annotations

from typing import Any

LETTER = [
    "Discharge letter for Ana Lima, born 1980-02-29.",
    "Asthma (ICD-10 J45.9) since 2011-04-02. Salbutamol 100 micrograms, two puffs when needed.",
]
SCAN_LINES = ["Patient: Ana Silva, born 1980-02-29", "Haemoglobin 12.9 g/dl"]
# An image of one pixel: what Textract reads in it is told to its stand-in.
SCAN_PNG = bytes.fromhex(
    "89504e470d0a1a0a0000000d4948445200000001000000010802000000907753de"
    "0000000c49444154789c63f8ffff3f0005fe02fe0def46b80000000049454e44ae426082"
)


def _said(number: int, contains: str, **output: Any) -> dict[str, Any]:
    return {"schema": f"records_pass{number}", "contains": contains, "output": output}


ANSWERS = [
    _said(
        1,
        "Discharge letter",
        entities=[
            {"type": "condition", "text": "Asthma (ICD-10 J45.9) since 2011-04-02", "page": 1, "confidence": 0.96},
            {"type": "medication", "text": "Salbutamol 100 micrograms", "page": 1, "confidence": 0.94},
        ],
        subjects=[{"name": "Ana Lima", "date_of_birth": "1980-02-29", "page": 1}],
    ),
    _said(
        1,
        "Haemoglobin",
        entities=[{"type": "other", "text": "Haemoglobin 12.9 g/dl", "page": 1, "confidence": 0.9}],
        subjects=[{"name": "Ana Silva", "date_of_birth": "1980-02-29", "page": 1}],
    ),
    _said(
        2,
        "Asthma",
        conditions=[
            {
                "entity_no": 1,
                "name": "Asthma",
                "code": "J45.9",
                "code_system": "ICD-10",
                "status": "active",
                "onset_date": "2011-04-02",
                "confidence": 0.95,
            }
        ],
        medications=[
            {
                "entity_no": 2,
                "name": "Salbutamol",
                "dose": "100 micrograms",
                "frequency": "as needed",
                "confidence": 0.9,
            }
        ],
    ),
    {"schema": "records_pass2", "output": {"conditions": [], "medications": []}},
    _said(3, "Asthma", narrative="Asthma since April 2011, treated with salbutamol as needed.", sources=[]),
    {"schema": "records_pass3", "output": {"narrative": "Nothing that is coded was found.", "sources": []}},
]
