"""Make new jobs wait for other jobs: of the same submit, or older ones, which may end at any moment.

The commit handles parents that end before it, because only the commit locks their rows (finish_submits).
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from datetime import timedelta

import psycopg
from psycopg.rows import TupleRow

from signalbox.errors import JobRefused
from signalbox.jobs.dependency import Dependency
from signalbox.postgres.queries import load_queries

SQL = load_queries(__file__)
TupleCursor = psycopg.Cursor[TupleRow]

Edges = Mapping[tuple[str, str], Dependency]  # by the ids of the job that waits and of its parent


def refuse_circles(edges: Iterable[tuple[str, str]]) -> None:
    """Refuse jobs of one submit that wait for each other in a circle. Nobody else knows their ids yet."""
    waits: dict[str, list[str]] = {}
    for id_, parent in edges:
        waits.setdefault(id_, []).append(parent)
    if not waits:
        return
    from graphlib import CycleError, TopologicalSorter

    try:
        TopologicalSorter(waits).prepare()
    except CycleError as error:
        raise JobRefused(f"jobs would wait for each other in a circle: {' → '.join(error.args[1])}") from None


def edges_of(waits: Sequence[tuple[str, Dependency]], older: Mapping[str, str]) -> Edges:
    """Return what the new jobs wait for. `older` names the first job where a parent's key had been used before."""
    edges: dict[tuple[str, str], Dependency] = {}
    for id_, dependency in waits:
        edges.setdefault((id_, older.get(dependency.job_id, dependency.job_id)), dependency)
    if older:
        refuse_circles(edges)
    return edges


def wait_for_parents(cursor: TupleCursor, edges: Edges, lost_after: timedelta) -> tuple[dict[str, str], list[str]]:
    """Return the states of jobs that need not wait for all they name, and the parents left to the commit."""
    rows = json.dumps([_row(*edge) for edge in edges.items()])
    found = cursor.execute(SQL["insert_dependencies"], {"rows": rows}).fetchall()
    waiting = sorted({id_ for id_, _ in edges})
    if missing := {parent for _, parent in edges} - {parent for parent, _ in found}:
        raise JobRefused(f"it depends on job {min(missing)}, which does not exist; nothing was stored")
    values = {"ids": waiting, "lost_after": lost_after}
    states: dict[str, str] = dict(cursor.execute(SQL["count_unmet"], values).fetchall())
    return states, sorted({parent for parent, satisfied in found if not satisfied})


def resolved_states(cursor: TupleCursor, edges: Edges, lost_after: timedelta) -> dict[str, str]:
    """Return the states of the waiting jobs after the commit: some of their parents may just have ended."""
    waiting = sorted({id_ for id_, _ in edges})
    cursor.execute(SQL["queue_released"], {"ids": waiting, "lost_after": lost_after})
    return dict(cursor.execute(SQL["read_states"], {"ids": waiting}).fetchall())


def _row(ids: tuple[str, str], dependency: Dependency) -> dict[str, str]:
    job_id, parent = ids
    return {
        "job_id": job_id,
        "depends_on_job_id": parent,
        "dependency_type": dependency.type,
        "on_failure": dependency.on_failure,
    }
