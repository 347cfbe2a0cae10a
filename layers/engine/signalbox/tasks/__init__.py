"""List the engine's own tasks, which keep its ledger and jobs in order. Each also has a rule in the template."""

from __future__ import annotations

from datetime import timedelta

from signalbox.packs.task import MINUTE, CatchUp, Task

TASKS = (
    Task(
        "poll_data",
        "check for new upstream data and trigger forecast runs",
        "signalbox.tasks.poll_data",
        schedule="cron(0/15 * * * ? *)",
        function="poller",
        # The next poll sees everything that the missed ones would have seen.
        catch_up=CatchUp.SKIP,
        stand_in=True,
    ),
    Task(
        "reconcile_slots",
        "record missed slots, and run them by each task's catch-up policy",
        "signalbox.tasks.reconcile_slots",
        schedule="cron(7/15 * * * ? *)",
        retention=timedelta(days=30),
    ),
    Task(
        "sweep_runs",
        "fail runs whose worker vanished, and run their slots again",
        "signalbox.tasks.sweep_runs",
        schedule="cron(2/5 * * * ? *)",
        retention=timedelta(days=7),
    ),
    Task(
        "prune_history",
        "delete runs older than their task's retention, old backfills and expired leases",
        "signalbox.tasks.prune_history",
        schedule="cron(30 2 * * ? *)",
        catch_up=CatchUp.LATEST,
    ),
    Task(
        "advance_backfills",
        "run the next slots of each backfill, at its rate",
        "signalbox.tasks.advance_backfills",
        schedule=MINUTE,
        max_lateness=timedelta(minutes=10),
        retention=timedelta(days=2),
    ),
    Task(
        "advance_bulk_actions",
        "go on with bulk actions on jobs and dead letters",
        "signalbox.tasks.advance_bulk_actions",
        schedule=MINUTE,
        max_lateness=timedelta(minutes=10),
        retention=timedelta(days=2),
    ),
    Task(
        "dispatch_jobs",
        "send due jobs to their lanes, and resend jobs whose message was lost",
        "signalbox.tasks.dispatch_jobs",
        schedule=MINUTE,
        max_lateness=timedelta(minutes=10),
        retention=timedelta(days=2),
    ),
    Task(
        "rescue_jobs",
        "rescue jobs whose worker vanished: retry or dead-letter them",
        "signalbox.tasks.rescue_jobs",
        schedule=MINUTE,
        max_lateness=timedelta(minutes=10),
        retention=timedelta(days=2),
    ),
    Task(
        "run_schedules",
        "submit the jobs of due schedules",
        "signalbox.tasks.run_schedules",
        schedule=MINUTE,
        max_lateness=timedelta(minutes=10),
        retention=timedelta(days=2),
    ),
    Task(
        "mark_stale",
        "mark running jobs without recent heartbeats as stale",
        "signalbox.tasks.mark_stale",
        schedule=MINUTE,
        max_lateness=timedelta(minutes=10),
        retention=timedelta(days=2),
    ),
    Task(
        "roll_up_metrics",
        "count ended attempts by minute, hour and day",
        "signalbox.tasks.roll_up_metrics",
        schedule="cron(1/5 * * * ? *)",
        catch_up=CatchUp.LATEST,
        retention=timedelta(days=7),
    ),
    Task(
        "notify_dead_letters",
        "notify the operators of new dead letters, by severity",
        "signalbox.tasks.notify_dead_letters",
        schedule="cron(3/5 * * * ? *)",
        retention=timedelta(days=7),
    ),
    Task(
        "prune_jobs",
        "delete jobs and attempts older than their retention",
        "signalbox.tasks.prune_jobs",
        schedule="cron(15 3 * * ? *)",
        catch_up=CatchUp.LATEST,
    ),
    Task(
        "archive_dead_letters",
        "move closed dead letters older than their retention to the audit log",
        "signalbox.tasks.archive_dead_letters",
        schedule="cron(45 3 * * ? *)",
        catch_up=CatchUp.LATEST,
    ),
)
