"""Dependencies of jobs that are stored already: a further parent for a job that has not begun.

No job ever waits for itself, not even round a circle that two transactions close at once: those that add dependencies
do so one after the other. What becomes of a job whose parent ends, settle_jobs decides, in the database.
"""

from __future__ import annotations

from signalbox.database import Connection
from signalbox.errors import JobRefused, JobUnknown, TransitionRefused
from signalbox.jobs.lanes import Notice
from signalbox.jobs.parents import Dependency
from signalbox.jobs.selection import require_id
from signalbox.jobs.states import JobState
from signalbox.jobs.submission import read_notices
from signalbox.queries import load_queries

SQL = load_queries(__file__)
WAITING = (JobState.PENDING, JobState.PAUSED)


def add_dependency(db: Connection, job_id: str, dependency: Dependency) -> list[Notice]:
    """Makes the job wait for another one, too. A parent that has ended is applied at once by the dependency's policy.

    Answers what may be sent once this is committed. The same dependency again changes nothing.
    """
    parent = require_id(dependency.job_id)
    if parent == require_id(job_id):
        raise JobRefused(f"job {job_id} would depend on itself")
    with db.transaction():
        _take_turn(db)
        _hold(db, job_id, parent)
        if not _is_new(db, job_id, dependency):
            return []
        _refuse_circle(db, job_id, parent)
        values = {"job_id": job_id, "parent": parent, "type": dependency.type, "on_failure": dependency.on_failure}
        db.execute(SQL["insert"], values)
        released = [id_ for (id_,) in db.execute(SQL["settle"], {"parent": parent}).fetchall()]
        return read_notices(db, released)


def _take_turn(db: Connection) -> None:
    [isolation] = db.execute(SQL["take_turn"]).fetchone() or ("",)
    if isolation != "read committed":
        raise JobRefused(
            f"a dependency can't be added in a transaction that is {isolation}: it would not see the others'"
        )


def _hold(db: Connection, job_id: str, parent: str) -> None:
    """The parent first, as its worker does. Neither begins or ends before this transaction does."""
    if db.execute(SQL["hold_parent"], {"parent": parent}).fetchone() is None:
        raise JobRefused(f"there is no job {parent} to depend on")
    found = db.execute(SQL["hold_job"], {"job_id": job_id}).fetchone()
    if found is None:
        raise JobUnknown(f"there is no job {job_id}")
    if found[0] not in WAITING:
        raise TransitionRefused(
            f"job {job_id} is {found[0]}: only one that is pending or paused can be made to wait for another; "
            "submit it with the dependency, or with a delay"
        )


def _is_new(db: Connection, job_id: str, dependency: Dependency) -> bool:
    known = db.execute(SQL["find"], {"job_id": job_id, "parent": dependency.job_id}).fetchone()
    if known not in (None, (dependency.type, dependency.on_failure)):
        raise JobRefused(f"job {job_id} depends on {dependency.job_id} already, in another way: {' / '.join(known)}")
    return known is None


def _refuse_circle(db: Connection, job_id: str, parent: str) -> None:
    [waits] = db.execute(SQL["waits_for"], {"job_id": parent, "other": job_id}).fetchone() or (False,)
    if waits:
        raise JobRefused(f"jobs would wait for each other in a circle: {parent} waits for {job_id} already")
