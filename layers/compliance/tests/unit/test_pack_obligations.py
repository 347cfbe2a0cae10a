"""How an obligation stands in a pack follows from its deadlines, or else from its status."""

from __future__ import annotations

from dataclasses import replace
from datetime import date, timedelta

import pytest

from compliance.reports.pack_obligations import Deadline, Evidence, Obligation, Standing, count

TODAY = date(2026, 3, 10)
EVIDENCE = Evidence("e", "a.pdf", "PDF", "application/pdf", 4, None, "a.pdf", None)
BARE = Obligation(
    id="o",
    site=None,
    reference=None,
    summary=None,
    original_text=None,
    category=None,
    frequency=None,
    status="PENDING",
    today=TODAY,
    deadlines=(),
    evidence=(),
)


@pytest.mark.parametrize(
    ("deadlines", "standing"),
    [
        ([(-1, "COMPLETED")], Standing.COMPLETE),
        ([(-9, "COMPLETED"), (1, "OVERDUE")], Standing.OVERDUE),
        ([(-1, "PENDING"), (9, "COMPLETED")], Standing.OVERDUE),
        ([(-1, "DUE_SOON")], Standing.OVERDUE),
        ([(0, "DUE_SOON")], Standing.PENDING),
        ([(-1, "COMPLETED"), (0, "PENDING")], Standing.PENDING),
    ],
)
def test_deadlines_decide_how_an_obligation_stands(deadlines: list[tuple[int, str]], standing: Standing) -> None:
    found = [Deadline(TODAY + timedelta(days=days), status) for days, status in deadlines]
    assert replace(BARE, status="IN_PROGRESS", deadlines=found).standing == standing


@pytest.mark.parametrize(
    ("status", "standing"),
    [
        ("OVERDUE", Standing.OVERDUE),
        ("COMPLETED", Standing.COMPLETE),
        ("IN_PROGRESS", Standing.PENDING),
        ("NOT_APPLICABLE", Standing.PENDING),
    ],
)
def test_status_decides_without_deadlines(status: str, standing: Standing) -> None:
    assert replace(BARE, status=status).standing == standing


def test_file_of_two_obligations_counts_once() -> None:
    shared = replace(BARE, evidence=(EVIDENCE,))
    found = count([shared, replace(shared, id="p")], faulty_files=1)
    assert (found.total_obligations, found.pending_count, found.evidence_count, found.integrity_errors_count) == (
        2,
        2,
        1,
        1,
    )
