"""Define the pack `passports`: digital battery passports, from an uploaded bill of materials to a signed QR code."""

from __future__ import annotations

from pathlib import Path

from passports.job_types import JOB_TYPES
from passports.tasks import TASKS
from signalbox import Pack

PACK = Pack("passports", TASKS, Path(__file__).parent / "migrations", JOB_TYPES)
