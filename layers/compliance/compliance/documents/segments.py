"""Divide a document's text into segments, and segments into chunks for the model. Nothing here reads or writes."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterable, Iterator, Sequence

MOST_CHARACTERS = 400_000  # of a chunk: about 100,000 tokens
_BETWEEN = "\n\n"
# "Condition 3", "3.1.2", "3.1(a)", "3)", or "3" before a capital letter.
_CONDITION = re.compile(
    r"\s*(?:(?i:condition)\s+\d+|\d+(?:\.\d+)+|\d+(?:\.\d+)*(?:\([a-z]+\)|[.)])|\d{1,3}(?=\s+[A-Z]))(?:[.:)]?(?:\s|$))"
)


def join_pages(pages: Iterable[str]) -> str:
    """Return the text of a document. The blank line between pages ends a segment, as any does."""
    return _BETWEEN.join(pages)


def split(text: str) -> list[str]:
    """Return the segments: lines up to a blank line, or to one that begins with a condition number."""
    return list(_segments(text))


def _segments(text: str) -> Iterator[str]:
    segment: list[str] = []
    for line in text.splitlines():
        if segment and (not line.strip() or _CONDITION.match(line)):
            yield "\n".join(segment)
            segment = []
        if line.strip():
            segment.append(line.strip())
    if segment:
        yield "\n".join(segment)


def join(segments: Iterable[str], most: int = MOST_CHARACTERS) -> list[str]:
    """Return the chunks: segments in their order, as many as have room. A longer segment is cut."""
    chunks: list[str] = []
    for piece in (piece for segment in segments for piece in _pieces(segment, most)):
        if chunks and len(chunks[-1]) + len(_BETWEEN) + len(piece) <= most:
            chunks[-1] += _BETWEEN + piece
        else:
            chunks.append(piece)
    return chunks


def _pieces(segment: str, most: int) -> list[str]:
    return [segment[start : start + most] for start in range(0, len(segment), most)]


def halves(chunk: str) -> Sequence[str]:
    """Return both halves, cut between segments, else lines, else words; only the chunk where there is one word."""
    text = chunk.strip()
    for mark in (_BETWEEN, "\n", " "):
        places = [found.start() for found in re.finditer(re.escape(mark), text)]
        if places:
            nearest = min(places, key=lambda place: abs(place - len(text) / 2))
            return [text[:nearest], text[nearest + len(mark) :]]
    return [text]


def sha256_of(chunk: str) -> str:
    return hashlib.sha256(chunk.encode()).hexdigest()
