"""Doctor judges the database's own timeouts."""

from __future__ import annotations

from signalbox_cli.doctor.database import check_timeouts

BOTH = {"statement_timeout": "310s", "idle_in_transaction_session_timeout": "5min"}


def test_timeouts_that_are_set_are_well() -> None:
    (finding,) = check_timeouts(BOTH)
    assert finding.verdict == "ok"
    assert finding.detail == "statement_timeout is 310s, idle_in_transaction_session_timeout is 5min"


def test_disabled_timeout_is_warned_of_with_the_statement_to_set_it() -> None:
    (finding,) = check_timeouts({**BOTH, "idle_in_transaction_session_timeout": "0"})
    assert finding.verdict == "warn"
    assert finding.advice == (
        "a killed worker's transaction may outlive its lease: "
        "ALTER ROLE … SET idle_in_transaction_session_timeout = '5min'; see docs/settings.md"
    )


def test_engine_without_time_outs_is_not_blamed() -> None:
    assert check_timeouts({}) == []
