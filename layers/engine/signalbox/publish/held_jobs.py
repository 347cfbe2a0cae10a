"""Find the jobs that caps and rates hold and that may begin, for workers and sweeps to send."""

from __future__ import annotations

from collections.abc import Sequence

from signalbox.jobs.job_message import JobMessage
from signalbox.postgres.connection import Connection
from signalbox.postgres.queries import load_queries

SQL = load_queries(__file__)
MOST_SENT = 1000


def next_held(db: Connection, caps: Sequence[str], most: int = MOST_SENT) -> list[JobMessage]:
    """Return the messages of the jobs that these caps and rates hold and that may begin."""
    rows = db.execute(SQL["next_held"], {"caps": list(caps), "most": most}).fetchall()
    return [JobMessage(*row) for row in rows]


def list_holding(db: Connection) -> list[str]:
    """Return the caps and rates that hold jobs."""
    return [name for (name,) in db.execute(SQL["list_holding"])]


def release_held(db: Connection, cap: str, batch: int = MOST_SENT) -> list[str]:
    """Return a batch of jobs that are held no longer, because their cap and rate are gone. dispatch_jobs sends them."""
    return [id_ for (id_,) in db.execute(SQL["release"], {"cap": cap, "batch": batch})]
