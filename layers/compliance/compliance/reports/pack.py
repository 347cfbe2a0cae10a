"""Describe a pack: what it is about, its obligations, and the faults of its files."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import date, datetime
from functools import cached_property

from compliance.reports.evidence import Fault
from compliance.reports.pack_obligations import Counts, Evidence, Obligation, Standing, count, files_of


@dataclass(frozen=True)
class Pack:
    """Hold all that a pack's report says."""

    pack_type: str
    company: str
    site: str | None
    document: Mapping[str, str | None] | None
    start: date
    end: date
    generated_at: datetime
    generated_by: str
    recipient: str | None
    purpose: str | None
    obligations: Sequence[Obligation]
    faults: Mapping[str, Fault]  # by the file's id

    @cached_property
    def files(self) -> dict[str, Evidence]:
        return files_of(self.obligations)

    @cached_property
    def counts(self) -> Counts:
        return count(self.obligations, len(self.faults))

    @cached_property
    def gaps(self) -> list[Obligation]:
        """Return what is not complete: what is overdue first, and of it what was missed first."""
        open_ = [one for one in self.obligations if one.standing != Standing.COMPLETE]
        return sorted(open_, key=lambda one: (one.overdue_since or date.max, one.standing, one.reference or ""))


def newest_files(obligations: Iterable[Obligation]) -> dict[str, Evidence]:
    """Return the newest file of each obligation, by its id."""
    return {one.evidence[0].id: one.evidence[0] for one in obligations if one.evidence}
