"""Doctor judges the schema by the migrator's report."""

from __future__ import annotations

from typing import Any

import pytest

from signalbox_cli.doctor.database import judge_migrations


@pytest.mark.parametrize(
    ("report", "verdict", "detail"),
    [
        ({"pending": []}, "ok", "signalbox at 5, none pending"),
        ({"pending": ["signalbox/0006_more"]}, "fail", "signalbox at 5; pending: signalbox/0006_more"),
        ({"pending": [], "fault": "the database is newer"}, "warn", "signalbox at 5; the database is newer"),
    ],
)
def test_schema_is_judged_by_missing_and_by_unknown_migrations(
    report: dict[str, Any], verdict: str, detail: str
) -> None:
    finding = judge_migrations({"versions": {"signalbox": 5}, **report})
    assert (finding.verdict, finding.detail) == (verdict, detail)


def test_database_without_a_schema_is_reported() -> None:
    assert "no schema yet" in judge_migrations({"versions": {}, "pending": ["signalbox/0001_baseline"]}).detail
