"""Record what the lanes gave up, and what rules and invocations lost: the function dead_letter.

    read → look at the job → leave it to its keepers, or write a dead letter

A job that is still alive is left alone: only its message got lost, as when the database was down. So is a slot that
failed because the database was down: reconcile_slots finds it missed, and follows its task's policy. Else ten minutes
without a database would leave some sixty dead letters of the tasks of each minute, and page somebody once all is well.
A message that comes twice makes one dead letter, and one that can't be recorded comes back.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

import psycopg

from signalbox.dead_letters.dlq_message import FailedMessage, job_of, read_letter
from signalbox.errors import DatabaseUnavailable, PayloadRefused, Refused, Unavailable
from signalbox.invocation import Invocation, Resources
from signalbox.ledger.task_payload import TaskPayload
from signalbox.packs.payload import read_payload
from signalbox.packs.schedule import Schedule
from signalbox.postgres.queries import load_queries

SQL = load_queries(__file__)
_OF_A_RULE = {"task", "scheduled_time"}


def consume_dead_letters(resources: Resources, event: object, _: Invocation) -> dict[str, Any]:
    """Return to SQS the messages that must come back. Raise where all must, so that the alarm rings."""
    if not isinstance(event, dict) or not isinstance(event.get("Records"), list):
        raise PayloadRefused('the dead_letter function takes events of SQS, {"Records": [...]}, and this is not one')
    records, unrecorded = event["Records"], []
    failure: Exception | None = None
    for record in records:
        try:
            _consume_one(resources, record)
        except (psycopg.Error, Unavailable) as error:
            failure = error
            unrecorded.append(record["messageId"])
            fields = {"message_id": record["messageId"], "error": type(error).__name__}
            resources.log.warning("dead_letter.not_recorded", extra=fields)
    if failure is not None and len(unrecorded) == len(records):
        raise failure
    return {"batchItemFailures": [{"itemIdentifier": id_} for id_ in unrecorded]}


def _consume_one(resources: Resources, record: Mapping[str, Any]) -> None:
    db, job_id = resources.database.connection(), job_of(record)
    if job_id is not None:
        found = db.execute(SQL["look_at_job"], {"id": job_id}).fetchone()
        if found is not None:
            # Queued or pending: dispatch_jobs sends it again. Running: its worker or rescue_jobs ends it. Final: it is
            # done.
            fields = {"job_id": job_id, "message_id": record["messageId"], "status": found[0]}
            resources.log.info("message.given_up", extra=fields)
            return
    letter = read_letter(record, resources.settings.stack)
    if _is_left_to_reconcile_slots(db, letter):
        ids = {"task": letter.job_type, "scheduled_time": letter.payload["scheduled_time"]}
        resources.log.info("invocation.given_up", extra={**ids, "message_id": record["messageId"]})
        return
    if _write(db, letter):
        ids = {"dead_letter_id": letter.id, "source": letter.source, "job_type": letter.job_type}
        resources.log.warning("dead_letter.written", extra={**ids, "error": letter.error_type})


def _is_left_to_reconcile_slots(db: psycopg.Connection[Any], letter: FailedMessage) -> bool:
    """Return whether a rule asked for the run, no run has tried the slot, and reconcile_slots will look for it."""
    asked = letter.payload
    if letter.error_type != DatabaseUnavailable.__name__ or not isinstance(asked, dict) or set(asked) != _OF_A_RULE:
        return False
    found = db.execute(SQL["look_at_task"], {"task": letter.job_type}).fetchone()
    if found is None:
        return False
    schedule, looked_for_since = found
    try:
        scheduled = read_payload(TaskPayload, asked).scheduled_time
        slot = Schedule.parse(schedule).slot_of(scheduled) if scheduled else None
    except Refused:
        return False
    if slot is None or slot < looked_for_since:
        return False
    return db.execute(SQL["look_at_slot"], {"task": letter.job_type, "slot": slot}).fetchone() is None


def _write(db: psycopg.Connection[Any], letter: FailedMessage) -> bool:
    values = {
        "id": letter.id,
        "source": letter.source,
        "job_type": letter.job_type,
        "payload": json.dumps(letter.payload),
        "failure_reason": letter.failure_reason,
        "error_type": letter.error_type,
        "error_message": letter.error_message,
        "error_stack": letter.error_stack,
        "total_attempts": letter.total_attempts,
        "fingerprint": letter.fingerprint,
        "metadata": json.dumps({name: value for name, value in letter.metadata.items() if value is not None}),
    }
    with db.transaction():
        if db.execute(SQL["write"], values).rowcount == 1:
            return True
        raise psycopg.Rollback  # the message has come before: its kind has not returned, and none is counted as ignored
    return False
