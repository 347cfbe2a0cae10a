"""Check what only the functions can see: the database, its schema, and the ledger."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from signalbox_cli.doctor.check import Finding, fail, ok, warn
from signalbox_cli.target.target import Target
from signalbox_cli.views.times import show_duration

# Suggested values: a little more than the longest statement takes, and than a transaction waits for its worker.
_TIMEOUTS = {"statement_timeout": "15min", "idle_in_transaction_session_timeout": "5min"}


def check_migrations(target: Target) -> list[Finding]:
    return [judge_migrations(target.invoke("migrator", {"action": "report"}).value())]


def judge_migrations(report: Mapping[str, Any]) -> Finding:
    versions = ", ".join(f"{pack} at {version}" for pack, version in report["versions"].items()) or "no schema yet"
    if "fault" in report:
        advice = "the functions keep working while the schema serves them, as after a roll-back"
        return warn("migrations", f"{versions}; {report['fault']}", advice)
    if report["pending"]:
        pending = ", ".join(report["pending"])
        return fail("migrations", f"{versions}; pending: {pending}", "`signalbox migrate` applies them")
    return ok("migrations", f"{versions}, none pending")


def check_ledger(target: Target) -> list[Finding]:
    found = target.operate("examine")
    database = found["database"]
    latency = show_duration(database["latency_ms"]) if database["latency_ms"] >= 1 else "under 1 ms"
    return [
        ok("database", f"PostgreSQL {database['server_version']}, {database['name']}, answers in {latency}"),
        _locks(found["locks"]),
        *_runs(found["runs"]),
        # On the laptop a killed worker's connection closes with it.
        *([] if target.endpoint else check_timeouts(found.get("timeouts", {}))),
    ]


def check_timeouts(timeouts: Mapping[str, str]) -> list[Finding]:
    """Check the time-outs that end the work of a killed worker. An older engine does not report them."""
    if not timeouts:
        return []
    values = ", ".join(f"{name} is {value}" for name, value in timeouts.items())
    unset = [f"ALTER ROLE … SET {name} = '{_TIMEOUTS[name]}'" for name in _TIMEOUTS if timeouts.get(name) == "0"]
    if not unset:
        return [ok("timeouts", values)]
    advice = f"a killed worker's transaction may outlive its lease: {'; '.join(unset)}; see docs/settings.md"
    return [warn("timeouts", values, advice)]


def _locks(locks: dict[str, int]) -> Finding:
    if not locks["expired"]:
        return ok("locks", f"{locks['held']:,} held, none expired")
    advice = "sweep_runs ends such runs each five minutes; `signalbox invoke sweep_runs` does so now"
    return warn("locks", f"{locks['expired']:,} expired: their workers vanished", advice)


def _runs(runs: dict[str, int]) -> list[Finding]:
    findings = []
    for status in ("failed", "missed"):
        if count := runs[f"{status}_last_day"]:
            advice = f"`signalbox history --status {status} --since 1d` lists them"
            findings.append(warn("runs", f"{count:,} {status} in the last day", advice))
    return findings or [ok("runs", f"{runs['running']:,} at work; none failed or missed in the last day")]


def check_tasks(tasks: list[dict[str, Any]]) -> list[Finding]:
    disabled = [task["name"] for task in tasks if not task["enabled"]]
    if not disabled:
        return [ok("tasks", f"{len(tasks)} registered, none disabled")]
    advice = "the template's parameter DisabledTasks names them; what their rules fire is skipped"
    return [warn("tasks", f"{len(tasks)} registered, disabled: {', '.join(disabled)}", advice)]
