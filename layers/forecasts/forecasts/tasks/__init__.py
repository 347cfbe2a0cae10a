"""List the pack's tasks; each has a rule in the template.

Most runs also do the work of the slots missed before, so at most the latest missed slot is caught up. A slot of
verification reads one day only, so every missed slot is caught up.
"""

from __future__ import annotations

from datetime import timedelta

from signalbox.packs.task import CatchUp, Overlap, Task

DAY = timedelta(days=1)
QUARTERLY = "cron(0/15 * * * ? *)"
HOURLY = "cron(0 * * * ? *)"

TASKS = (
    Task(
        "poll_data",
        "check for new upstream data and trigger forecast runs",
        "forecasts.tasks.poll_data",
        schedule=QUARTERLY,
        function="poller",
        # The next poll finds everything that the missed ones would have found.
        catch_up=CatchUp.SKIP,
        overlap=Overlap.FORBID,
    ),
    Task(
        "archive_watchpoints",
        "archive watchpoints whose event has passed, and request their summaries",
        "forecasts.tasks.archive_watchpoints",
        schedule=QUARTERLY,
    ),
    Task(
        "requeue_deferred",
        "send the notifications whose quiet hours have ended",
        "forecasts.tasks.requeue_deferred",
        schedule=QUARTERLY,
    ),
    Task(
        "reconcile_forecasts",
        "check forecast runs that take too long: complete, retry or fail them",
        "forecasts.tasks.reconcile_forecasts",
        schedule=HOURLY,
        overlap=Overlap.FORBID,
    ),
    Task(
        "trigger_digests",
        "request the digests that are due",
        "forecasts.tasks.trigger_digests",
        schedule=HOURLY,
        catch_up=CatchUp.LATEST,
    ),
    Task(
        "sync_stripe",
        "compare subscriptions with Stripe, and repair ours",
        "forecasts.tasks.sync_stripe",
        schedule="cron(0 0 * * ? *)",
        catch_up=CatchUp.LATEST,
        overlap=Overlap.FORBID,
    ),
    Task(
        "aggregate_usage",
        "store yesterday's usage, and start new periods",
        "forecasts.tasks.aggregate_usage",
        schedule="cron(0 1 * * ? *)",
        catch_up=CatchUp.LATEST,
    ),
    Task(
        "enforce_payment_failure",
        "pause the watchpoints of organisations that have not paid for a week",
        "forecasts.tasks.enforce_payment_failure",
        schedule="cron(20 1 * * ? *)",
        catch_up=CatchUp.LATEST,
    ),
    Task(
        "enforce_overage",
        "pause the newest watchpoints of organisations over their plan for two weeks",
        "forecasts.tasks.enforce_overage",
        # After aggregate_usage, which ends the overage of organisations that are within their plan again.
        schedule="cron(40 1 * * ? *)",
        catch_up=CatchUp.LATEST,
    ),
    Task(
        "cleanup_soft_deletes",
        "purge organisations a month after they were deleted",
        "forecasts.tasks.cleanup_soft_deletes",
        schedule="cron(0 2 * * ? *)",
    ),
    Task(
        "cleanup_expired_invites",
        "delete invites that were never accepted",
        "forecasts.tasks.cleanup_expired_invites",
        schedule="cron(10 2 * * ? *)",
    ),
    Task(
        "cleanup_archived_watchpoints",
        "delete watchpoints that were archived long ago",
        "forecasts.tasks.cleanup_archived_watchpoints",
        schedule="cron(20 2 * * ? *)",
    ),
    Task(
        "cleanup_notifications",
        "delete old notifications and their deliveries",
        "forecasts.tasks.cleanup_notifications",
        schedule="cron(40 2 * * ? *)",
    ),
    Task(
        "archive_audit_logs",
        "move old audit records to cold storage",
        "forecasts.tasks.archive_audit_logs",
        schedule="cron(50 2 * * ? *)",
        catch_up=CatchUp.LATEST,
        overlap=Overlap.FORBID,
    ),
    Task(
        "cleanup_idempotency_keys",
        "delete expired idempotency keys",
        "forecasts.tasks.cleanup_idempotency_keys",
        schedule="cron(0 3 * * ? *)",
    ),
    Task(
        "verification",
        "request a comparison of yesterday's forecasts with observations, and check the canaries",
        "forecasts.tasks.verification",
        schedule="cron(0 3 * * ? *)",
        # Each slot reads a day of its own.
        catch_up=CatchUp.ALL,
        max_lateness=3 * DAY,
    ),
    Task(
        "transition_forecasts",
        "delete the stored data of old forecasts",
        "forecasts.tasks.transition_forecasts",
        schedule="cron(0 4 * * ? *)",
        catch_up=CatchUp.LATEST,
    ),
    Task(
        "update_calibration",
        "request a new calibration of tiles with enough verification",
        "forecasts.tasks.update_calibration",
        schedule="cron(30 4 ? * MON *)",
        catch_up=CatchUp.LATEST,
        max_lateness=3 * DAY,
    ),
    Task(
        "cleanup_security_events",
        "delete security events older than a week",
        "forecasts.tasks.cleanup_security_events",
        schedule="cron(0 5 * * ? *)",
    ),
)
