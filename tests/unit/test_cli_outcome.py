"""Failures of fired rules are recognised, and a table shows their runs."""

from __future__ import annotations

import json
from dataclasses import replace
from datetime import UTC, datetime
from typing import Any

from signalbox_cli.views.log_line import LogRecord
from signalbox_cli.views.table import table
from signalbox_cli.views.tick_page import COLUMNS, Before, TickResult, caused, rows

AT = datetime(2026, 1, 5, 2, 30, tzinfo=UTC)
BEFORE = Before(last_id=10, lost={4})


def run(id_: int, status: str = "succeeded", **columns: Any) -> dict[str, Any]:
    return {
        "id": id_,
        "job_type": "sweep_runs",
        "slot": "2026-01-05T02:27:00+00:00",
        "reference_time": AT.isoformat(),
        "trigger": "schedule",
        "status": status,
        "items": 2,
        "duration_ms": 12,
        "reason": None,
        "error": {"type": "Oops", "message": "it broke"} if status == "failed" else None,
        **columns,
    }


def fired(**columns: Any) -> dict[str, Any]:
    return {"rule": "signalbox.sweep_runs", "time": "2026-01-05T02:30:00Z", "targets": 1, "failed": 0, **columns}


def lost(status: str) -> dict[str, Any]:
    return run(4, status, job_type="reconcile_slots")


GOOD = TickResult(
    fired=[fired()],
    runs=[lost("failed"), run(11), run(12, "skipped", reason="no upstream is configured")],
    before=BEFORE,
    idle=True,
    errors=[],
)


def test_what_the_sample_data_planted_is_no_failure_of_the_demo() -> None:
    assert GOOD.failures() == []


def test_a_failed_run_is_a_failure() -> None:
    assert replace(GOOD, runs=[run(11, "failed")]).failures() == [
        "sweep_runs for 2026-01-05T02:27Z failed: Oops: it broke"
    ]


def test_run_that_nothing_ended_fails_even_if_it_was_planted() -> None:
    (failure,) = replace(GOOD, runs=[lost("running")]).failures()
    assert "reconcile_slots for 2026-01-05T02:27Z is still at work" in failure


def test_a_rule_that_did_not_reach_its_target_is_a_failure() -> None:
    (failure,) = replace(GOOD, fired=[fired(failed=1)]).failures()
    assert "signalbox.sweep_runs did not reach 1 of its 1 targets" in failure


def test_a_demo_without_any_rule_is_a_failure() -> None:
    assert replace(GOOD, fired=[]).failures() == ["no rule fired: the template has none that is enabled"]


def test_errors_of_functions_and_their_events_are_failures() -> None:
    report = json.dumps({"type": "platform.report", "record": {"status": "timeout"}})
    errors = [LogRecord.read(report, "archiver")] * 3
    assert replace(GOOD, errors=errors, failed_invocations=1, idle=False).failures() == [
        "the stack was still at work when time was up",
        "function archiver failed with timeout: 3 invocations",
        "1 event ended among the dead letters",
    ]


def test_only_caused_or_changed_runs_are_shown_fired_ones_first() -> None:
    ledger = [run(13, trigger="backfill"), run(12), run(11, job_type="poll_data"), run(9), lost("failed")]
    assert [one["id"] for one in caused(ledger, BEFORE, AT)] == [4, 11, 12, 13]


def test_what_the_clock_or_a_person_started_meanwhile_was_not_caused() -> None:
    ledger = [run(12, trigger="manual"), run(11, reference_time="2026-01-05T02:31:00+00:00")]
    assert caused(ledger, BEFORE, AT) == []


def test_the_table_has_a_row_a_run_and_folds_what_was_missed() -> None:
    missed = [
        run(20 + minute, "missed", job_type="pulse", slot=f"2026-01-05T01:{minute:02}:00+00:00", items=0, duration_ms=0)
        for minute in (40, 41, 42)
    ]
    outcome = replace(GOOD, runs=[*GOOD.runs, *missed])
    assert outcome.missed() == 3
    assert [line.plain for line in table(COLUMNS, rows(outcome), 100)] == [
        "task             slot               trigger   status     items   took",
        "reconcile_slots  2026-01-05T02:27Z  schedule  lost           2         sample: its worker vanished",
        "sweep_runs       2026-01-05T02:27Z  schedule  succeeded      2  12 ms",
        "sweep_runs       2026-01-05T02:27Z  schedule  skipped        2  12 ms  no upstream is configured",
        "pulse            2026-01-05T01:40Z  schedule  missed                   3 slots, to 01:42Z",
    ]


def test_a_sentence_counts_what_ran_what_was_missed_and_whether_any_failed() -> None:
    assert GOOD.counted() == "3 runs, 0 missed slots found, nothing failed"
    bad = replace(GOOD, runs=[run(11, "failed"), run(12, "missed", reason="no run came for this slot")])
    assert bad.counted() == "1 run, 1 missed slot found, see below for what failed"
