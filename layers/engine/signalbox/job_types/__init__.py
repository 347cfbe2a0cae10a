"""List the engine's own job types, which any product can use."""

from __future__ import annotations

from datetime import timedelta

from signalbox.packs.job_type import LIGHT, JobType, Lane, TypeCap
from signalbox.packs.retry_policy import RetryPolicy

JOB_TYPES: tuple[JobType, ...] = (
    JobType(
        "deliver_webhook",
        "delivers an event as a signed webhook",
        "signalbox.job_types.webhooks.deliver_webhook",
        # More than the 30 s that a receiver may take: time to read the key, and for the receiver's time-out to be
        # reported.
        timeout=timedelta(seconds=45),
        side_by_side=50,  # it only waits
        cap=TypeCap(max_running=50, per="key"),  # per receiver and tenant: one that hangs does not block others
        # Eleven retries: 5 s, 20 s, 80 s, … and in the end every six hours, so that a receiver may be down for a day.
        retry=RetryPolicy(
            max_attempts=12, base=timedelta(seconds=5), factor=4, cap=timedelta(hours=6), jitter="twenty_percent"
        ),
        subject="delivery_id",
    ),
    JobType(
        "deliver_notification",
        "notifies people by mail, SMS or in the application, or a topic's subscribers",
        "signalbox.job_types.deliver_notification",
        timeout=timedelta(minutes=2),
        retry=RetryPolicy(max_attempts=5, base=timedelta(seconds=2), cap=timedelta(minutes=5), jitter="twenty_percent"),
        subject="notification_id",
    ),
    JobType(
        "run_task",
        "runs a scheduled task as a job",
        "signalbox.job_types.run_task",
        side_by_side=1,  # as in the archiver: a task has its process to itself
        lanes=LIGHT | {Lane.HEAVY},
        category="maintenance",
        subject="task",
    ),
    JobType(
        "import_table",
        "imports CSV or JSON lines from S3 into a table",
        "signalbox.job_types.tables.import_table",
        side_by_side=1,
        lanes=LIGHT | {Lane.HEAVY},
        category="background",
        transactional=True,
        subject="table",
        correlation="key",
    ),
    JobType(
        "export_table",
        "exports the rows of a table or view to S3",
        "signalbox.job_types.tables.export_table",
        side_by_side=1,
        # A file is one statement: it gets as much time as a worker has.
        lane=Lane.HEAVY,
        category="background",
        timeout=timedelta(minutes=14),
        retry=RetryPolicy(max_attempts=3, base=timedelta(seconds=10)),
        subject="table",
    ),
)
