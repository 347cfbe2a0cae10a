"""Divide a file's pages into pieces; a cursor of numbers says which is next. Nothing here reads or writes."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from math import ceil
from typing import Any

_MOST_CHARACTERS = 48_000  # of a piece: 12,000 tokens


@dataclass(frozen=True, slots=True)
class Place:
    """Say where a pass is: which piece is next, from which page, and how long its answer may be."""

    piece: int = 0
    page: int = 0  # how many pages are done
    ends: tuple[int, ...] = ()  # of this piece and those after it, where a longer one had no room
    is_long: bool = False  # the answer had no room before

    @staticmethod
    def of(cursor: Any) -> Place:
        if cursor is None:
            return Place()
        return Place(cursor["piece"], cursor["page"], tuple(cursor["ends"]), bool(cursor["long"]))

    def cursor(self) -> dict[str, Any]:
        """Return what a job keeps: numbers alone, since cursors are no place for health data."""
        return {"piece": self.piece, "page": self.page, "ends": list(self.ends), "long": int(self.is_long)}

    def end(self, characters: Sequence[int]) -> int:
        """Return where the piece ends: after as many whole pages as have room, and one at least."""
        if self.ends:
            return self.ends[0]
        end, total = self.page + 1, characters[self.page]
        while end < len(characters) and total + characters[end] <= _MOST_CHARACTERS:
            total += characters[end]
            end += 1
        return end

    def after(self, end: int) -> Place:
        """Return the place of the next piece."""
        return Place(self.piece + 1, end, self.ends[1:])

    def with_more_room(self) -> Place:
        """Return the same piece's place, whose answer may be longer."""
        return replace(self, is_long=True)

    def halved(self, end: int) -> Place | None:
        """Return the place of the first half of the pages, or None where there is one page alone."""
        pages = end - self.page
        if pages == 1:
            return None
        return Place(self.piece, self.page, (self.page + ceil(pages / 2), *(self.ends or (end,))))
