"""The job type `django_task` runs Django's tasks. A pack of the project names it, and brings Django and the project.

This module imports no Django: a stack knows its job types before it runs any.
"""

from __future__ import annotations

from pathlib import Path

from signalbox.packs.job_type import LIGHT, JobType, Lane
from signalbox.packs.pack import Pack
from signalbox.packs.retry_policy import RetryPolicy

DJANGO_TASK = JobType(
    "django_task",
    "runs a task of a Django project",
    "signalbox.django.django_task",
    lanes=LIGHT | {Lane.HEAVY},
    # As with Django's own backends a task that fails is not run again, unless its backend's MAX_ATTEMPTS says so.
    retry=RetryPolicy(max_attempts=1),
    subject="task",
)
DJANGO = Pack("django", (), Path(__file__).parent / "migrations", (DJANGO_TASK,))
