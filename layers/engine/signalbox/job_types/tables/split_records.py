"""Cut a stream of bytes into records, wherever the stream itself is cut: a line each, or more within quotes.

Quotes are only counted, as COPY does: a doubled quote within quotes changes nothing about which is open.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from typing import NamedTuple

from signalbox.packs.outcome import Permanent

LONGEST = 1 << 20  # bytes of a record
BOM = b"\xef\xbb\xbf"


class SourceRecord(NamedTuple):
    """Describe one record, and where the next begins."""

    line: int  # of the file, from 1
    content: bytes | None  # without its line's end; None: it was too long to keep
    end: int  # the next record's offset
    next_line: int


@dataclass(slots=True)
class Splitter:
    """Split content from an offset at which a record begins."""

    offset: int = 0
    line: int = 1
    quotes: bool = True
    longest: int = LONGEST
    _held: bytearray = field(default_factory=bytearray)
    _size: int = 0
    _newlines: int = 0  # within the record
    _open: bool = False

    def split(self, blocks: Iterable[bytes]) -> Iterator[SourceRecord]:
        """Return the records, including a last one without a newline."""
        for block in blocks:
            *ended, rest = block.split(b"\n")
            for piece in ended:
                self._add(piece)
                if self._open:
                    self._newlines += 1
                    self._add(b"\n")
                else:
                    yield self._take(newline=1)
            self._add(rest)
        if self._open:
            raise Permanent(f"the file ends within quotes, in the record that starts in line {self.line}")
        if self._size:
            yield self._take(newline=0)

    def _add(self, piece: bytes) -> None:
        if self.quotes and piece.count(b'"') & 1:
            self._open = not self._open
        self._size += len(piece)
        if self._size <= self.longest:
            self._held += piece
        elif self._open:
            # It is unknown where the quotes should end: going on could swallow the rest of the file as one record.
            raise Permanent(
                f"the record that starts in line {self.line} is longer than {self.longest} bytes and its quotes are "
                "still open: one is missing or one too many"
            )

    def _take(self, newline: int) -> SourceRecord:
        content = bytes(self._held).removesuffix(b"\r") if self._size <= self.longest else None
        if content is not None and self.offset == 0:
            content = content.removeprefix(BOM)
        self.offset += self._size + newline
        record = SourceRecord(self.line, content, self.offset, self.line + self._newlines + 1)
        self.line = record.next_line
        self._held.clear()
        self._size = self._newlines = 0
        return record
