"""Ask a model about a file in three passes, a job each: entities and whose they are, then rows, then a narrative.

pass 1 → [a person decides, where it may be another patient's] → pass 2 → pass 3; each writes, and submits the next, in
one transaction. A pass of a session that is no longer the file's writes nothing.
"""

from __future__ import annotations

from records.intake.shell_file import find_file
from records.passes.pass1 import pass1
from records.passes.pass2 import pass2
from records.passes.pass3 import pass3
from records.passes.session import AiProcessing, Session, ended
from signalbox import Cancelled, Completed, JobContext, More, Snooze

__all__ = ["AiProcessing", "ai_processing"]
_PASSES = {1: pass1, 2: pass2, 3: pass3}


def ai_processing(context: JobContext) -> Completed | More | Snooze | Cancelled:
    """Return the pass's ids and counts, and what its answers have cost."""
    payload: AiProcessing = context.payload
    session = Session(context, find_file(context), payload)
    if session.file.session_id != session.id:
        return ended()
    context.note(pass_number=payload.pass_number, processing_session_id=session.id)
    return _PASSES[payload.pass_number](session)
