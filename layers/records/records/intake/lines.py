"""Keep the lines of a file's pages, and say how much text they are. Nothing here reads or writes."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from math import ceil
from typing import Any

from signalbox.documents.line import Line

LEAST_CHARACTERS = 20  # of a page that is no scan
_CHARACTERS_PER_TOKEN = 4
_TOKENS_PER_PAGE = 100
_MOST_SIMPLE_TOKENS, _MOST_SIMPLE_PAGES = 30_000, 10


@dataclass(frozen=True, slots=True)
class Page:
    """Hold what a model reads of a page."""

    number: int
    lines: Sequence[str]

    @property
    def characters(self) -> int:
        return sum(map(len, self.lines))


def is_scan(page: Sequence[Line]) -> bool:
    """Say whether a page of a PDF has too little text of its own."""
    return sum(len(line.text) for line in page) < LEAST_CHARACTERS


def to_json(pages: Sequence[Sequence[Line]]) -> bytes:
    """Return the file's text as it is stored, with the place of each line."""
    content = {
        "version": 1,
        "pages": [
            {
                "page": page,
                "lines": [
                    {"no": no, "text": line.text, "confidence": line.confidence, "box": line.box}
                    for no, line in enumerate(lines, 1)
                ],
            }
            for page, lines in enumerate(pages, 1)
        ],
    }
    return json.dumps(content, ensure_ascii=False, separators=(",", ":")).encode()


def from_json(data: bytes) -> list[Page]:
    """Return the pages of a stored text."""
    content: dict[str, Any] = json.loads(data)
    return [Page(page["page"], [line["text"] for line in page["lines"]]) for page in content["pages"]]


def estimate_tokens(pages: Sequence[Sequence[Line]]) -> int:
    characters = sum(len(line.text) for page in pages for line in page)
    return ceil(characters / _CHARACTERS_PER_TOKEN) + _TOKENS_PER_PAGE * len(pages)


def is_complex(tokens: int, pages: int) -> bool:
    """Say whether the passes of such a file need the time of the heavy lane."""
    return tokens > _MOST_SIMPLE_TOKENS or pages > _MOST_SIMPLE_PAGES
