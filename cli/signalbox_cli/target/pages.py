"""Read lists that operations return page by page: each page says where the next one begins."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from signalbox_cli.target.target import Target

MOST_A_PAGE = 1000


@dataclass(frozen=True, slots=True)
class PagedList:
    """Name an operation that lists, the field of its answer that holds a page, and the param that takes `next`."""

    operation: str
    field: str
    begins_at: str


JOBS = PagedList("list_jobs", "jobs", "before_id")
RUNS = PagedList("list_runs", "runs", "before_id")
SCHEDULES = PagedList("list_schedules", "schedules", "after_name")
DEAD_LETTERS = PagedList("list_dead_letters", "dead_letters", "before")


def fetch_pages(
    target: Target, listed: PagedList, most: int | None = None, begin: Any = None, **filters: Any
) -> tuple[list[dict[str, Any]], Any]:
    """Return as many as asked for, or all, and where the rest begins, if there is any."""
    found: list[dict[str, Any]] = []
    while True:
        size = MOST_A_PAGE if most is None else min(MOST_A_PAGE, most - len(found))
        page = target.operate(listed.operation, limit=size, **{listed.begins_at: begin}, **filters)
        found += page[listed.field]
        begin = page["next"]
        if begin is None or len(found) == most:
            return found, begin
