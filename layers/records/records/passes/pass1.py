"""Find the entities in a file, piece by piece, and judge whether it is the patient's.

a piece's pages → the model → records/pass1/<session>/<piece>.json; after the last piece, one transaction writes all.
An attempt that finds its piece's answer does not ask again.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import asdict
from typing import Any

from psycopg.types.json import Jsonb

from records.intake.lines import Page, from_json
from records.intake.shell_file import bucket_of, find_pass, lock_session, submit_pass
from records.passes.answers import Pass1Answer, check
from records.passes.identity import Subject, judge
from records.passes.pieces import Place
from records.passes.question import ask_pass, model_id_of
from records.passes.session import Session, completed, ended, for_next_pass, truncated
from records.passes.usage import Usage, total
from signalbox import Cancelled, Completed, More
from signalbox.packs.refusals import refuse
from signalbox.postgres.queries import load_queries

SQL = load_queries(__file__)
_INSTRUCTION = (
    "You read medical documents. Record each condition and each medication that the document says the patient has or "
    "takes, and each other finding about the patient's health, in the order of the text: its kind, the document's own "
    "words with the codes, dates and doses that belong to it, its page, and how sure you are from 0 to 1. Record each "
    "person that the document is about, with the name and birth date as the document has them; not those who wrote it."
)


def pass1(session: Session) -> Completed | More | Cancelled:
    """Ask about one piece; after the last one, write what was found and submit the second pass."""
    context = session.context
    if (known := find_pass(context, session.id, 2)) is not None:
        return _completed(session, Usage(), known.id)
    pages = _pages(session)
    place = Place.of(context.cursor)
    end = place.end([page.characters for page in pages])
    found = _stored(session, place, end)
    if found is None:
        text = "\n\n".join(map(_text, pages[place.page : end]))
        asked = ask_pass(context, 1, _INSTRUCTION, text, Pass1Answer, is_long=place.is_long)
        if asked.cut is not None:
            return _cut(place, end, asked.cut)
        answer = check(Pass1Answer, asked.output).model_dump(mode="json")
        found = {"pages": [place.page, end], "answer": answer}
        bucket_of(context).write(_key(session, place.piece), json.dumps(found).encode(), "application/json")
    after = place.after(end)
    if end < len(pages):
        return More(after.cursor(), 100 * end // len(pages), f"{end} of {len(pages)} pages are read")
    return _finish(session, after, len(pages))


def _pages(session: Session) -> Sequence[Page]:
    key = session.payload.ocr_spatial_data
    if key != f"records/ocr/{session.id}.json":
        raise refuse("NOT_FOUND", "ocr_spatial_data is not the text of this session")
    data = bucket_of(session.context).read(key)
    if data is None:
        raise refuse("NOT_FOUND", f"the text {key} does not exist: process the file again")
    return from_json(data)


def _text(page: Page) -> str:
    return f"[page {page.number}]\n" + "\n".join(page.lines)


def _key(session: Session, piece: int) -> str:
    return f"records/pass1/{session.id}/{piece}.json"


def _stored(session: Session, place: Place, end: int) -> dict[str, Any] | None:
    """Return what the piece has found, if an earlier attempt has asked about the same pages."""
    data = bucket_of(session.context).read(_key(session, place.piece))
    found: dict[str, Any] | None = None if data is None else json.loads(data)
    return found if found and found["pages"] == [place.page, end] else None


def _cut(place: Place, end: int, reason: str) -> More:
    """Ask again, for a longer answer or about fewer pages, in an attempt that has the whole time."""
    roomier = None if place.is_long else place.with_more_room()
    further = roomier if reason == "max_tokens" else place.halved(end)
    if further is None:
        raise truncated(place, reason)
    return More(further.cursor(), message=f"the answer to piece {place.piece + 1} had no room")


def _finish(session: Session, place: Place, pages: int) -> Completed | More | Cancelled:
    """Write what all pieces have found, unless a twin has, and submit the second pass."""
    context = session.context
    found = [_piece(session, piece) for piece in range(place.piece)]
    if [page for one in found for page in range(*one["pages"])] != list(range(pages)):
        return More(Place().cursor(), message="a twin has divided the file in another way: once more")
    answers = [check(Pass1Answer, one["answer"]) for one in found]
    entities = [entity.model_dump() for answer in answers for entity in answer.entities]
    subjects = [Subject(one.name, one.date_of_birth, one.page) for answer in answers for one in answer.subjects]
    usage = total(context)
    with context.db.transaction():
        if lock_session(context, session.file) != session.id:
            return ended()
        if (known := find_pass(context, session.id, 2)) is not None:
            return _completed(session, Usage(), known.id)
        [profile] = context.db.execute(SQL["read_profile"], session.values).fetchall()
        risk = judge(subjects, *profile)
        values = {
            **session.values,
            **asdict(usage),
            "entities": Jsonb(entities),
            "detected": len(entities),
            "model": model_id_of(context),
            "score": risk.score,
            "needs_review": risk.needs_review,
            "crosses": risk.crosses_profiles,
            "reasons": Jsonb(risk.reasons),
        }
        context.db.execute(SQL["write_entities"], values)
        context.db.execute(SQL["write_classification"], values)
        job_id = submit_pass(context, session.id, 2, for_next_pass(session.payload))
    return _completed(session, usage, job_id)


def _piece(session: Session, piece: int) -> dict[str, Any]:
    data = bucket_of(session.context).read(_key(session, piece))
    if data is None:
        raise refuse("NOT_FOUND", f"what piece {piece + 1} has found is gone: process the file again")
    found: dict[str, Any] = json.loads(data)
    return found


def _completed(session: Session, usage: Usage, job_id: str) -> Completed:
    row = session.context.db.execute(SQL["read_result"], session.values).fetchone()
    if row is None:
        raise refuse("NOT_FOUND", "the session's entities are gone: process the file again")
    entities, score, needs_review, crosses = row
    return completed(
        session,
        usage,
        job_id,
        entities=entities,
        contamination_risk_score=float(score),
        manual_review_required=needs_review,
        cross_profile_risk_detected=crosses,
    )
