"""Answer or raise whatever the job's payload says."""

from __future__ import annotations

import time
from datetime import timedelta
from typing import Any, Literal

from signalbox.packs.job_payload import JobPayload
from signalbox.packs.outcome import Cancelled, Completed, More, Outcome, Permanent, RateLimited, Snooze, Transient
from signalbox.worker.job_context import JobContext


class Obey(JobPayload):
    """Hold the second version; the first called `word` `order`."""

    word: Literal["complete", "more", "snooze", "cancel", "fail", "fail_for_good", "wait", "hang", "begin", "nonsense"]
    seconds: int = 0


def upgrade(payload: dict[str, Any], _version: int) -> dict[str, Any]:
    """Upgrade from the first version."""
    return {"word": payload["order"]}


def obey(context: JobContext) -> Outcome | Any:
    """Do as it is told."""
    delay = timedelta(seconds=context.payload.seconds)
    if context.payload.word == "more":
        piece = (context.cursor or 0) + 1
        return More(piece, percent=piece * 25) if piece < 4 else Completed({"pieces": piece})
    while context.payload.word == "hang":
        time.sleep(0.05)
    errors = {
        "fail": Transient("trouble 17", delay or None),
        "fail_for_good": Permanent("never"),
        "wait": RateLimited("later", delay),
    }
    if error := errors.get(context.payload.word):
        raise error
    if context.payload.word == "begin":
        context.db.execute("BEGIN")
        context.db.execute("INSERT INTO notes (job_id) VALUES (%s)", (context.job.id,))
    answers = {
        "complete": Completed({"attempt": context.job.attempt}, ["s3://bucket/file"]),
        "begin": Completed(),
        "snooze": Snooze(delay, "not yet"),
        "cancel": Cancelled("no longer wanted"),
    }
    return answers.get(context.payload.word, "nonsense")
