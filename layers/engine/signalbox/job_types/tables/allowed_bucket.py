"""Decide which buckets jobs may use: the stack's own, and those that a setting lists.

The worker's role may use more, because tasks need more, so its rights do not limit what a payload may name.
"""

from __future__ import annotations

from signalbox.packs.outcome import Permanent
from signalbox.runtime.settings import Settings


def find_bucket(settings: Settings, named: str | None) -> str:
    """Return the bucket that a payload names, or the stack's own; raise Permanent for one that is not open to jobs."""
    bucket = named or settings.jobs_bucket
    if bucket is None:
        raise Permanent("no bucket: the payload names none, and the stack has none of its own (SIGNALBOX_JOBS_BUCKET)")
    if bucket != settings.jobs_bucket and bucket not in settings.file_transfers.buckets:
        raise Permanent(
            f"bucket '{bucket}' is not open to jobs in this stack: SIGNALBOX_FILE_TRANSFERS lists those that are, "
            f"beside the stack's own {settings.jobs_bucket}"
        )
    return bucket
