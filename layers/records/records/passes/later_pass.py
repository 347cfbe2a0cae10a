"""Perform a pass that comes after the gate: look, ask once, look again with everything locked, and write."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Generic

from records.intake.shell_file import lock_session
from records.passes import gate
from records.passes.answers import AnswerOfPass, check
from records.passes.pieces import Place
from records.passes.question import ask_pass
from records.passes.session import Session, ended, truncated
from records.passes.usage import Usage, total
from signalbox import Cancelled, Completed, More, Permanent, Snooze


@dataclass(frozen=True, slots=True)
class LaterPass(Generic[AnswerOfPass]):
    """Say what one pass asks, and what it does with the answer."""

    number: int
    instruction: str
    answer: type[AnswerOfPass]
    known: Callable[[Session], Completed | None]  # the result, where the pass has been written
    text: Callable[[Session], str]  # that the model reads
    check: Callable[[Session, AnswerOfPass], None]  # beyond the answer's own model
    write: Callable[[Session, AnswerOfPass, Usage], Completed]


def perform(session: Session, one: LaterPass[AnswerOfPass]) -> Completed | More | Snooze | Cancelled:
    """Return the pass's result, or what it waits for."""
    context = session.context
    if (known := one.known(session)) is not None:
        return known
    with context.db.transaction():
        lock_session(context, session.file)  # first, as where it writes: two passes would else wait for each other
        closed = gate.look(session)
    if closed is not None:
        return _raised(closed)
    place = Place.of(context.cursor)
    asked = ask_pass(context, one.number, one.instruction, one.text(session), one.answer, is_long=place.is_long)
    if asked.cut == "max_tokens" and not place.is_long:
        return More(place.with_more_room().cursor(), message="the answer had no room")
    if asked.cut is not None:
        raise truncated(place, asked.cut)
    answer = check(one.answer, asked.output)
    one.check(session, answer)
    return _write(session, one, answer)


def _write(session: Session, one: LaterPass[AnswerOfPass], answer: AnswerOfPass) -> Completed | Snooze | Cancelled:
    usage = total(session.context)
    with session.context.db.transaction():
        if lock_session(session.context, session.file) != session.id:
            return ended()
        if (known := one.known(session)) is not None:  # a twin was faster
            return known
        if (closed := gate.look(session)) is None:  # a flag may have been set while the model was at work
            return one.write(session, answer, usage)
    return _raised(closed)


def _raised(closed: Snooze | Cancelled | Permanent) -> Snooze | Cancelled:
    """Raise a refusal only here, after the transaction that set the file's status."""
    if isinstance(closed, Permanent):
        raise closed
    return closed
