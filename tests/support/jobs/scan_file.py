"""Complete; what a payload makes of its job is decided before."""

from __future__ import annotations

from typing import Literal
from uuid import UUID

from signalbox.packs.job_payload import JobPayload
from signalbox.worker.job_context import JobContext


class ScanFile(JobPayload):
    """Name a file, and how large it is."""

    file_id: str
    size: Literal["small", "large", "huge"] = "small"
    session: str | None = None
    owner: UUID | None = None


def scan_file(_: JobContext) -> None: ...
