"""The engine's own tasks, by which it keeps its ledger true. One line each, and a rule in the template."""

from __future__ import annotations

from datetime import timedelta

from signalbox.registry import MINUTE, CatchUp, Task

TASKS = (
    Task(
        "poll_data",
        "look for new upstream data and trigger forecast runs",
        "signalbox.tasks.poll_data",
        schedule="cron(0/15 * * * ? *)",
        function="poller",
        # The next poll sees all that the missed ones would have seen.
        catch_up=CatchUp.SKIP,
        stand_in=True,
    ),
    Task(
        "reconcile_slots",
        "record the slots that were missed, and catch up as each task's policy says",
        "signalbox.tasks.reconcile_slots",
        schedule="cron(7/15 * * * ? *)",
        retention=timedelta(days=30),
    ),
    Task(
        "sweep_runs",
        "end the runs whose worker vanished, and run their slots again",
        "signalbox.tasks.sweep_runs",
        schedule="cron(2/5 * * * ? *)",
        retention=timedelta(days=7),
    ),
    Task(
        "prune_history",
        "delete runs older than their task's retention, and what is left of old backfills and leases",
        "signalbox.tasks.prune_history",
        schedule="cron(30 2 * * ? *)",
        catch_up=CatchUp.LATEST,
    ),
    Task(
        "advance_backfills",
        "start the next slots of each backfill, at its rate",
        "signalbox.tasks.advance_backfills",
        schedule=MINUTE,
        max_lateness=timedelta(minutes=10),
        retention=timedelta(days=2),
    ),
)
