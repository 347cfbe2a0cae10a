"""List the pack's tasks; each has a rule of its name in template.yaml.

Each but the last submits one job for each live company, each consultant with clients, or each permit with generators.
"""

from __future__ import annotations

from datetime import timedelta

from signalbox import CatchUp, Task

_HOURLY, _SIX_HOURLY = "cron(0 * * * ? *)", "cron(0 0,6,12,18 * * ? *)"
_DAY = timedelta(days=1)


def _trigger(name: str, what: str, schedule: str, catch_up: CatchUp = CatchUp.LATEST, days: int = 1) -> Task:
    return Task(
        name,
        what,
        "compliance.tasks.triggers",
        schedule=schedule,
        catch_up=catch_up,
        max_lateness=days * _DAY,
    )


TASKS: tuple[Task, ...] = (
    _trigger("trigger_monitoring_schedule", "have each company's deadlines calculated", _HOURLY, CatchUp.SKIP),
    _trigger("trigger_deadline_alert", "have each company warned of its deadlines", _SIX_HOURLY),
    _trigger(
        "trigger_cross_sell_trigger_detection",
        "have each company's new permits searched for keywords",
        _SIX_HOURLY,
        CatchUp.SKIP,
    ),
    _trigger("trigger_consultant_client_sync", "have each consultant's dashboard written", "cron(0 2 * * ? *)"),
    _trigger("trigger_sampling_schedule", "have each company reminded of samples", "cron(0 6 * * ? *)"),
    _trigger("trigger_run_hour_monitoring", "have each company's generators checked", "cron(0 7 * * ? *)"),
    _trigger(
        "trigger_permit_renewal_reminder", "have each company reminded of permits that expire", "cron(0 8 * * ? *)"
    ),
    _trigger("trigger_evidence_reminder", "have each company reminded of evidence", "cron(0 9 * * ? *)"),
    _trigger(
        "trigger_aer_generation", "have last year's emissions reported for each permit", "cron(0 8 15 1 ? *)", days=7
    ),
    Task(
        "report_failed_jobs",
        "tell people of jobs of theirs that have failed",
        "compliance.tasks.report_failed_jobs",
        schedule="cron(* * * * ? *)",
        catch_up=CatchUp.SKIP,
    ),
)
