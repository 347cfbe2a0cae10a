"""Make rows of the entities that were found: the patient's conditions and medications."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

from psycopg.types.json import Jsonb

from records.intake.shell_file import find_pass, submit_pass
from records.passes.answers import Part, Pass2Answer, check_entities
from records.passes.later_pass import LaterPass, perform
from records.passes.session import Session, completed, for_next_pass
from records.passes.usage import Usage
from signalbox import Cancelled, Completed, More, Snooze
from signalbox.packs.refusals import refuse
from signalbox.postgres.queries import load_queries

SQL = load_queries(__file__)
_INSTRUCTION = (
    "You code medical findings. Each of these was found in one document, with its entity_no. Record the conditions and "
    "the medications among them, each once: its entity_no, its name, the code, status or dates, or the dose, frequency "
    "and dates, as far as the text says them, else null, and how sure you are from 0 to 1. Dates are YYYY-MM-DD."
)
_CODED = ("condition", "medication")


def pass2(session: Session) -> Completed | More | Snooze | Cancelled:
    """Ask once, write the rows in place of those of earlier sessions, and submit the third pass."""
    return perform(session, _PASS)


def _known(session: Session) -> Completed | None:
    known = find_pass(session.context, session.id, 3)
    return None if known is None else _completed(session, Usage(), known.id)


def _entities(session: Session) -> list[dict[str, Any]]:
    row = session.context.db.execute(SQL["read_entities"], session.values).fetchone()
    if row is None:
        raise refuse("NOT_FOUND", "the session has no entities: its first pass has not ended")
    entities: list[dict[str, Any]] = row[0]
    return entities


def _text(session: Session) -> str:
    found = [
        {"entity_no": no, "type": entity["type"], "text": entity["text"]}
        for no, entity in enumerate(_entities(session), 1)
        if entity["type"] in _CODED
    ]
    return "\n".join(json.dumps(one, ensure_ascii=False) for one in found)


def _check(session: Session, answer: Pass2Answer) -> None:
    check_entities(answer, _entities(session))


def _write(session: Session, answer: Pass2Answer, usage: Usage) -> Completed:
    db = session.context.db
    db.execute(SQL["supersede_conditions"], session.values)
    db.execute(SQL["supersede_medications"], session.values)
    db.execute(SQL["write_conditions"], {**session.values, "rows": _as_json(answer.conditions)})
    db.execute(SQL["write_medications"], {**session.values, "rows": _as_json(answer.medications)})
    job_id = submit_pass(session.context, session.id, 3, for_next_pass(session.payload))
    return _completed(session, usage, job_id)


def _as_json(rows: Sequence[Part]) -> Jsonb:
    return Jsonb([row.model_dump(mode="json") for row in rows])


def _completed(session: Session, usage: Usage, job_id: str) -> Completed:
    [(conditions, medications)] = session.context.db.execute(SQL["count"], session.values).fetchall()
    return completed(session, usage, job_id, conditions=conditions, medications=medications)


_PASS = LaterPass(2, _INSTRUCTION, Pass2Answer, _known, _text, _check, _write)
