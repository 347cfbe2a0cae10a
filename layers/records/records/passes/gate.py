"""Let a session's later passes go on where the document is the patient's, or a person has decided that it is."""

from __future__ import annotations

from datetime import timedelta

from records.passes.session import Session
from signalbox import Cancelled, Permanent, Snooze
from signalbox.packs.refusals import refuse
from signalbox.postgres.queries import load_queries

SQL = load_queries(__file__)
_LOOK_EVERY = timedelta(minutes=15)
_LONGEST_REVIEW = timedelta(days=30)


def look(session: Session) -> Snooze | Cancelled | Permanent | None:
    """Return None if the pass may go on, else what becomes of it. To the transaction's end, the decision stays."""
    db = session.context.db
    row = db.execute(SQL["lock"], session.values).fetchone()
    if row is None:
        return refuse("NOT_FOUND", "the session has no classification: its first pass has not ended")
    is_flagged, decision, waited = row
    if decision == "rejected":
        db.execute(SQL["set_status"], {**session.values, "status": "rejected"})
        return Cancelled("a person has decided that the file is not the patient's")
    if decision == "approved" or not is_flagged:
        db.execute(SQL["go_on"], session.values)
        return None
    db.execute(SQL["set_status"], {**session.values, "status": "awaiting_review"})
    if waited > _LONGEST_REVIEW:
        days = _LONGEST_REVIEW.days
        return refuse("REVIEW_OVERDUE", f"nobody has decided on the file in {days} days: decide, then redrive")
    return Snooze(_LOOK_EVERY, "a person decides whether the file is the patient's")
