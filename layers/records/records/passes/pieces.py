"""Divide a file's pages into pieces; a cursor of numbers says which is next. Nothing here reads or writes."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass, field, replace
from math import ceil
from typing import Any

_MOST_CHARACTERS = 48_000  # of a piece: 12,000 tokens


@dataclass(frozen=True, slots=True)
class Usage:
    """Count what all answers of a pass have cost so far."""

    input_tokens: int = 0
    output_tokens: int = 0
    milliseconds: int = 0

    def __add__(self, other: Usage) -> Usage:
        return Usage(
            self.input_tokens + other.input_tokens,
            self.output_tokens + other.output_tokens,
            self.milliseconds + other.milliseconds,
        )


@dataclass(frozen=True, slots=True)
class Place:
    """Say where a pass is: which piece is next, from which page, and how long its answer may be."""

    piece: int = 0
    page: int = 0  # how many pages are done
    ends: tuple[int, ...] = ()  # of this piece and those after it, where a longer one had no room
    is_long: bool = False  # the answer had no room before
    usage: Usage = field(default_factory=Usage)

    @staticmethod
    def of(cursor: Any) -> Place:
        if cursor is None:
            return Place()
        usage = Usage(cursor["input_tokens"], cursor["output_tokens"], cursor["milliseconds"])
        return Place(cursor["piece"], cursor["page"], tuple(cursor["ends"]), bool(cursor["long"]), usage)

    def cursor(self) -> dict[str, Any]:
        """Return what a job keeps: numbers alone, since cursors are no place for health data."""
        numbers = {"piece": self.piece, "page": self.page, "ends": list(self.ends), "long": int(self.is_long)}
        return numbers | asdict(self.usage)

    def end(self, characters: Sequence[int]) -> int:
        """Return where the piece ends: after as many whole pages as have room, and one at least."""
        if self.ends:
            return self.ends[0]
        end, total = self.page + 1, characters[self.page]
        while end < len(characters) and total + characters[end] <= _MOST_CHARACTERS:
            total += characters[end]
            end += 1
        return end

    def after(self, end: int, used: Usage) -> Place:
        """Return the place of the next piece."""
        return Place(self.piece + 1, end, self.ends[1:], usage=self.usage + used)

    def with_more_room(self, used: Usage) -> Place:
        """Return the same piece's place, whose answer may be longer."""
        return replace(self, is_long=True, usage=self.usage + used)

    def halved(self, end: int, used: Usage) -> Place | None:
        """Return the place of the first half of the pages, or None where there is one page alone."""
        pages = end - self.page
        if pages == 1:
            return None
        rest = self.ends or (end,)
        return Place(self.piece, self.page, (self.page + ceil(pages / 2), *rest), usage=self.usage + used)
