"""Say how the obligations of a pack stand, and count them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import date, datetime
from enum import StrEnum

_OPEN = ("PENDING", "DUE_SOON")


class Standing(StrEnum):
    """Say what a pack counts an obligation as."""

    OVERDUE = "overdue"
    PENDING = "pending"
    COMPLETE = "complete"


_OF_STATUS = {"OVERDUE": Standing.OVERDUE, "COMPLETED": Standing.COMPLETE}


@dataclass(frozen=True, slots=True)
class Deadline:
    """Hold one deadline in the pack's range."""

    due_date: date
    status: str


@dataclass(frozen=True, slots=True)
class Evidence:
    """Hold a file as its row describes it."""

    id: str
    file_name: str | None
    file_type: str | None
    mime_type: str | None
    bytes: int | None
    sha256: str | None
    path: str | None
    uploaded_at: datetime | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Obligation:
    """Hold an obligation with its deadlines in the range, by date, and its files, the newest first."""

    id: str
    site: str | None
    reference: str | None
    summary: str | None
    original_text: str | None
    category: str | None
    frequency: str | None
    status: str
    today: date  # where its site is
    deadlines: Sequence[Deadline]
    evidence: Sequence[Evidence]

    @property
    def standing(self) -> Standing:
        if not self.deadlines:
            return _OF_STATUS.get(self.status, Standing.PENDING)
        if self.overdue_since is not None:
            return Standing.OVERDUE
        is_done = all(one.status == "COMPLETED" for one in self.deadlines)
        return Standing.COMPLETE if is_done else Standing.PENDING

    @property
    def overdue_since(self) -> date | None:
        """Return the first date that was missed."""
        return next((one.due_date for one in self.deadlines if self._is_missed(one)), None)

    def _is_missed(self, deadline: Deadline) -> bool:
        return deadline.status == "OVERDUE" or (deadline.status in _OPEN and deadline.due_date < self.today)


@dataclass(frozen=True, slots=True)
class Counts:
    """Hold the six counts of a pack, named as in its row."""

    total_obligations: int
    complete_count: int
    pending_count: int
    overdue_count: int
    evidence_count: int
    integrity_errors_count: int


def count(obligations: Sequence[Obligation], faulty_files: int) -> Counts:
    """Count the obligations, and their files once each."""
    found = Counter(one.standing for one in obligations)
    return Counts(
        len(obligations),
        found[Standing.COMPLETE],
        found[Standing.PENDING],
        found[Standing.OVERDUE],
        len(files_of(obligations)),
        faulty_files,
    )


def files_of(obligations: Sequence[Obligation]) -> dict[str, Evidence]:
    """Return all files by their ids."""
    return {file.id: file for one in obligations for file in one.evidence}
