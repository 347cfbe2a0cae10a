"""List, show and triage dead letters for operators.

A dead letter says what was decided about a failure. It never changes its job: only a redrive does (jobs/redrive.py).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from enum import StrEnum
from typing import Any

from psycopg.rows import dict_row

from signalbox.dead_letters.kinds import IgnoreRule, decide_kind
from signalbox.errors import DeadLetterUnknown, IdRefused, PayloadRefused, TransitionRefused
from signalbox.operate import listing
from signalbox.operate.filters import DeadLetterFilter, JobFilter
from signalbox.operate.short_ids import require_id
from signalbox.packs.registries import JobTypeRegistry
from signalbox.postgres.connection import Connection
from signalbox.postgres.json_rows import json_row
from signalbox.postgres.queries import load_queries

SQL = load_queries(__file__)


class LetterStatus(StrEnum):
    """Name what has been done about a failure."""

    PENDING = "pending"  # nobody has looked yet, or it has come back
    INVESTIGATING = "investigating"
    RESOLVED = "resolved"  # fixed in another way; opened again if its kind of failure returns
    IGNORED = "ignored"  # known, and nothing will be done about it
    REDRIVEN = "redriven"  # its job is on its way again


_S = LetterStatus
# What an operator may decide. Only a redrive sets redriven, and a new failure of the job ends it.
TRIAGE: Mapping[LetterStatus, frozenset[LetterStatus]] = {
    _S.PENDING: frozenset({_S.INVESTIGATING, _S.RESOLVED, _S.IGNORED}),
    _S.INVESTIGATING: frozenset({_S.PENDING, _S.RESOLVED, _S.IGNORED}),
    _S.RESOLVED: frozenset({_S.PENDING, _S.INVESTIGATING}),
    _S.IGNORED: frozenset({_S.PENDING, _S.INVESTIGATING}),
    _S.REDRIVEN: frozenset(),
}
_FIRST = {"limit": 1, "before_at": None, "before_id": None}
OPEN = (_S.PENDING, _S.INVESTIGATING)


@dataclass(frozen=True, slots=True)
class Triaged:
    """Count what a request to triage changed."""

    changed: int
    unchanged: int  # had that status already, or one that does not lead to it


def list_letters(
    db: Connection, selection: DeadLetterFilter, limit: int = 50, before: str | None = None
) -> dict[str, Any]:
    """Return a page, the newest failure first; `next` is the `before` of the page that follows."""
    at, id_ = _place(before)
    rows = _rows(db, "list", {**selection.values, "limit": limit, "before_at": at, "before_id": id_})
    last = rows[-1] if len(rows) == limit else None
    return {
        "dead_letters": [json_row(row) for row in rows],
        "next": last and f"{last['last_failed_at'].astimezone(UTC).isoformat()}/{last['id']}",
    }


def show_letter(db: Connection, id_: str) -> dict[str, Any]:
    """Return everything known about one: its payload, its job's executions and what operators have done."""
    require_id("dead_letter", id_)
    found = _rows(db, "show", {"id": id_})
    if not found:
        raise DeadLetterUnknown(_unknown([id_]))
    executions = _rows(db, "list_executions", {"id": id_})
    audit = _rows(db, "list_audit", {"id": id_})
    shown = json_row(found[0])
    copies = [_execution(copy) for copy in shown["execution_history"] or ()]
    # Once the job has been pruned, only the copy in the dead letter is left.
    shown["execution_history"] = [json_row(row) for row in executions] or copies
    return shown | {"audit": [json_row(row) for row in audit]}


def _execution(copy: Mapping[str, Any]) -> dict[str, Any]:
    """Return the copy of an execution with the names and the fields of an execution."""
    started, completed = (datetime.fromisoformat(copy[name]) for name in ("started_at", "completed_at"))
    names = {"attempt": "attempt_number", "error": "error_code", "message": "error_message"}
    return {
        **{names.get(name, name): value for name, value in copy.items()},
        "duration_ms": round((completed - started) / timedelta(milliseconds=1)),
        "error_stack": None,
        "memory_used_mb": None,
    }


def triage(
    db: Connection,
    selection: DeadLetterFilter,
    status: str,
    *,
    by: str,
    reason: str | None = None,
    rule: IgnoreRule | None = None,
) -> Triaged:
    """Set the status of the dead letters. Of ids that are named, either all can take the status or none does.

    A decision about a kind also decides about its failures to come: they are ignored by the rule, or by none.
    """
    target, sources = _transition(status)
    selection.require_any()
    with db.transaction():
        # First the kind, then its dead letters, as a failing job locks them.
        if (kind := selection.kind) is not None:
            decide_kind(db, kind, rule, by=by, reason=reason)
        held = db.execute(SQL["lock"], selection.values).fetchall()
        ids = [id_ for id_, found in held if found in sources]
        if selection.ids is not None:
            _require_all(selection.ids, dict(held), {*sources, str(target)}, target)
        values = {"ids": ids, "status": str(target), "by": by, "reason": reason}
        db.execute(SQL["triage"], values)
    return Triaged(len(ids), len(held) - len(ids))


def preview_triage(db: Connection, selection: DeadLetterFilter, status: str) -> dict[str, Any]:
    """Count what a triage would change, up to 10,000, and say whether there are more; change nothing."""
    target, sources = _transition(status)
    selection.require_any()
    if selection.ids is not None:
        found = {row["id"]: row["status"] for row in _rows(db, "list", {**selection.values, **_FIRST, "limit": None})}
        _require_all(selection.ids, found, {*sources, str(target)}, target)
    [(number,)] = db.execute(
        SQL["count_some"], {**selection.values, "sources": sources, "most": listing.MOST_COUNTED + 1}
    ).fetchall()
    return {"count": min(number, listing.MOST_COUNTED), "more": number > listing.MOST_COUNTED}


def _transition(status: str) -> tuple[LetterStatus, list[str]]:
    """Return the status that was decided, and those that lead to it."""
    target = LetterStatus(status)
    sources = [str(source) for source, targets in TRIAGE.items() if target in targets]
    if not sources:
        raise TransitionRefused("only a redrive makes a dead letter redriven: `signalbox redrive`")
    return target, sources


def require_found(ids: Sequence[str], found: Mapping[str, Any]) -> None:
    if missing := [id_ for id_ in ids if id_ not in found]:
        raise DeadLetterUnknown(_unknown(missing))


def require_known(db: Connection, job_types: JobTypeRegistry, selection: DeadLetterFilter) -> None:
    """Raise for a misspelt type: one that the code, the dead letters and the jobs don't know."""
    name = selection.job_type
    if name is None or _rows(db, "list", {**DeadLetterFilter(job_type=name).values, **_FIRST}):
        return
    listing.require_known(db, job_types, JobFilter(job_type=name))


def _require_all(ids: Sequence[str], found: Mapping[str, str], allowed: set[str], target: LetterStatus) -> None:
    require_found(ids, found)
    for id_ in ids:
        if found[id_] not in allowed:
            raise TransitionRefused(
                f"dead letter {id_} is {found[id_]}: only one that is {' or '.join(sorted(allowed - {str(target)}))} "
                f"can become {target}; nothing was changed"
            )


def _unknown(ids: Sequence[str]) -> str:
    others = f", nor {len(ids) - 1:,} others of those named" if len(ids) > 1 else ""
    return f"no dead letter has the id {ids[0]}{others}; it may be in the audit log, if it was closed long ago"


def _place(before: str | None) -> tuple[datetime | None, str | None]:
    if before is None:
        return None, None
    at, _, id_ = before.partition("/")
    try:
        require_id("dead_letter", id_)
        return datetime.fromisoformat(at), id_
    except (ValueError, IdRefused):
        raise PayloadRefused(f"'{before[:80]}' is not the `next` of a page of dead letters") from None


def _rows(db: Connection, query: str, values: Mapping[str, Any]) -> list[dict[str, Any]]:
    with db.cursor(row_factory=dict_row) as cursor:
        return cursor.execute(SQL[query], values).fetchall()
