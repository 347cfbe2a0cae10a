"""Define a line of a document's text and its place, as a PDF or a scan has it."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Line:
    """Hold a line, how sure its reader is of it, and its box on the page."""

    text: str
    confidence: float  # from 0 to 1
    box: tuple[float, float, float, float]  # left, top, width and height, as shares of the page from its top left
