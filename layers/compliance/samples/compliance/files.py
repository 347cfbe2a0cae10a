"""Make the files of the story."""

from __future__ import annotations

from signalbox.documents.report import Paragraph, report

_COMPANY, _SITE = "c0000000-0000-4000-8000-000000000001", "50000000-0000-4000-8000-000000000001"
PERMIT = f"documents/{_COMPANY}/{_SITE}/d0000000-0000-4000-8000-000000000001/original.pdf"
IMPORT = f"imports/{_COMPANY}/{_SITE}/e0000000-0000-4000-8000-000000000001/original.csv"
ALTERED = f"evidence/{_COMPANY}/{_SITE}/f0000000-0000-4000-8000-000000000001/inspection.txt"
PERMIT_LINES = [
    "ENVIRONMENTAL PERMIT EPR/AB1234",
    "",
    "2.1 The operator shall inspect the bund each month and keep a record.",
    "",
    "2.2 Dust shall be kept to a reasonable level at all times.",
    "",
    "2.3 The operator shall report emissions to the Agency by 31 January each year.",
]


def permit_pdf() -> bytes:
    return report("Environmental permit", [Paragraph(line) for line in PERMIT_LINES if line])


def evidence() -> bytes:
    """Return a file other than the one whose hash is kept."""
    return b"All was well. And this was added later."


def spreadsheet() -> bytes:
    """Return five rows: two are good, one has no title, one no date, and one is there twice."""
    return (
        "Permit Number,Obligation Title,Frequency,Deadline Date,Site ID\n"
        f"EPR/AB1234,Calibrate the weighbridge,annually,2026-01-31,{_SITE}\n"
        f"EPR/AB1234,Return the waste figures,quarterly,2026-01-30,{_SITE}\n"
        f"EPR/AB1234,,monthly,2026-02-01,{_SITE}\n"
        f"EPR/AB1234,Clean the interceptor,monthly,soon,{_SITE}\n"
        f"EPR/AB1234,Calibrate the weighbridge,annually,31/01/2026,{_SITE}\n"
    ).encode()
