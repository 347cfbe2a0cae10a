"""The schema uses the code's words."""

from __future__ import annotations

import re
from enum import StrEnum

import psycopg
import pytest

from signalbox.ledger.backfill import BackfillStatus, SlotStatus
from signalbox.ledger.ledger import RunStatus, Trigger


@pytest.mark.parametrize(
    ("constraint", "words"),
    [
        ("run_status_known", RunStatus),
        ("trigger_known", Trigger),
        ("backfill_status_known", BackfillStatus),
        ("backfill_slot_status_known", SlotStatus),
    ],
)
def test_each_enum_has_the_values_that_its_check_allows(
    db: psycopg.Connection, constraint: str, words: type[StrEnum]
) -> None:
    row = db.execute("SELECT pg_get_constraintdef(oid) FROM pg_constraint WHERE conname = %s", (constraint,)).fetchone()
    assert row is not None
    assert set(re.findall(r"'(\w+)'::text", row[0])) == set(words)
