"""Write a narrative of the rows, which names those that it is made of; the file is completed with it."""

from __future__ import annotations

import json
from typing import Any

from psycopg.types.json import Jsonb

from records.passes.answers import Pass3Answer, check_sources
from records.passes.later_pass import LaterPass, perform
from records.passes.question import model_id_of
from records.passes.session import Session, completed
from records.passes.usage import Usage
from signalbox import Cancelled, Completed, More, Snooze
from signalbox.packs.refusals import refuse
from signalbox.postgres.queries import load_queries

SQL = load_queries(__file__)
_INSTRUCTION = (
    "You write for clinicians. These are the conditions and medications that one document gives a patient. Record a "
    "short narrative of them in plain sentences, which adds nothing to them, and its sources: the kind and id of each "
    "that you used."
)


def pass3(session: Session) -> Completed | More | Snooze | Cancelled:
    """Ask once, and write the narrative in place of those of earlier sessions and of the one that is named."""
    return perform(session, _PASS)


def _known(session: Session) -> Completed | None:
    row = session.context.db.execute(SQL["find_narrative"], session.values).fetchone()
    return None if row is None else _completed(session, Usage(), row[0])


def _rows(session: Session) -> list[tuple[str, dict[str, Any]]]:
    return session.context.db.execute(SQL["read_rows"], session.values).fetchall()


def _text(session: Session) -> str:
    _check_superseded(session)  # before the model is paid for
    return "\n".join(json.dumps({"kind": kind, **row}, ensure_ascii=False) for kind, row in _rows(session))


def _check_superseded(session: Session) -> None:
    """Refuse a narrative to supersede that is not there, or another patient's."""
    narrative_id = session.payload.narrative_id
    values = {**session.values, "narrative": narrative_id}
    if narrative_id is not None and session.context.db.execute(SQL["find_named"], values).fetchone() is None:
        raise refuse("NOT_FOUND", f"the patient has no narrative {narrative_id}")


def _check(session: Session, answer: Pass3Answer) -> None:
    known: dict[str, set[str]] = {"condition": set(), "medication": set()}
    for kind, row in _rows(session):
        known[kind].add(row["id"])
    check_sources(answer, known)


def _write(session: Session, answer: Pass3Answer, usage: Usage) -> Completed:
    db = session.context.db
    values = {
        **session.values,
        "superseded": session.payload.narrative_id,
        "narrative": answer.narrative,
        "sources": Jsonb([source.model_dump() for source in answer.sources]),
        "model": model_id_of(session.context),
    }
    _check_superseded(session)
    db.execute(SQL["supersede"], values)
    [(narrative_id,)] = db.execute(SQL["write_narrative"], values).fetchall()
    db.execute(SQL["complete_file"], values)
    return _completed(session, usage, narrative_id)


def _completed(session: Session, usage: Usage, narrative_id: str) -> Completed:
    return completed(session, usage, None, narrative_id=narrative_id)


_PASS = LaterPass(3, _INSTRUCTION, Pass3Answer, _known, _text, _check, _write)
