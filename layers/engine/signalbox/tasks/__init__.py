"""List the engine's own tasks, which keep its ledger true. Each has one line here, and a rule in the template."""

from __future__ import annotations

from datetime import timedelta

from signalbox.packs.task import MINUTE, CatchUp, Task

TASKS = (
    Task(
        "poll_data",
        "look for new upstream data and trigger forecast runs",
        "signalbox.tasks.poll_data",
        schedule="cron(0/15 * * * ? *)",
        function="poller",
        # The next poll sees everything that the missed ones would have seen.
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
    Task(
        "dispatch_jobs",
        "send the jobs that are due, and again those whose message got lost",
        "signalbox.tasks.dispatch_jobs",
        schedule=MINUTE,
        max_lateness=timedelta(minutes=10),
        retention=timedelta(days=2),
    ),
    Task(
        "rescue_jobs",
        "take back the jobs whose worker vanished: try them again, or dead-letter them",
        "signalbox.tasks.rescue_jobs",
        schedule=MINUTE,
        max_lateness=timedelta(minutes=10),
        retention=timedelta(days=2),
    ),
    Task(
        "run_schedules",
        "submit the jobs of the schedules that are due",
        "signalbox.tasks.run_schedules",
        schedule=MINUTE,
        max_lateness=timedelta(minutes=10),
        retention=timedelta(days=2),
    ),
    Task(
        "mark_stale",
        "mark the running jobs that have not been heard of for minutes",
        "signalbox.tasks.mark_stale",
        schedule=MINUTE,
        max_lateness=timedelta(minutes=10),
        retention=timedelta(days=2),
    ),
    Task(
        "roll_up_metrics",
        "count the attempts that have ended by minute, hour and day",
        "signalbox.tasks.roll_up_metrics",
        schedule="cron(1/5 * * * ? *)",
        catch_up=CatchUp.LATEST,
        retention=timedelta(days=7),
    ),
    Task(
        "notify_dead_letters",
        "tell the operators of new dead letters, by severity",
        "signalbox.tasks.notify_dead_letters",
        schedule="cron(3/5 * * * ? *)",
        retention=timedelta(days=7),
    ),
    Task(
        "prune_jobs",
        "delete jobs and attempts older than they are kept",
        "signalbox.tasks.prune_jobs",
        schedule="cron(15 3 * * ? *)",
        catch_up=CatchUp.LATEST,
    ),
    Task(
        "archive_dead_letters",
        "move dead letters older than they are kept to the audit log",
        "signalbox.tasks.archive_dead_letters",
        schedule="cron(45 3 * * ? *)",
        catch_up=CatchUp.LATEST,
    ),
)
