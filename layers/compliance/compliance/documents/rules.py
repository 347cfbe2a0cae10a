"""Find obligations by the rules library: a segment that a rule matches needs no model.

Patterns come from people, and one may take for ever on some text, so each search has a second at most.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Literal

from pydantic import BaseModel, ValidationError

from signalbox.postgres.pg_text import clean

if TYPE_CHECKING:
    from regex import Pattern  # type: ignore[import-untyped]

Frequency = Literal["DAILY", "WEEKLY", "MONTHLY", "QUARTERLY", "ANNUAL", "ONE_TIME"]
_SECONDS = 1.0  # of a search
_MOST_TIMEOUTS = 3  # of a rule in a document; then it is left out


class RuleExtraction(BaseModel):
    """Say what a rule knows of the obligations that it finds."""

    summary: str | None = None
    category: str | None = None
    condition_type: str | None = None
    frequency: Frequency | None = None


@dataclass(slots=True)
class Rule:
    """Hold one rule, ready to search."""

    id: str
    pattern: Pattern[str]
    confidence: float
    extraction: RuleExtraction
    timeouts: int = 0

    def matches(self, text: str) -> bool:
        if self.timeouts >= _MOST_TIMEOUTS:
            return False
        try:
            return self.pattern.search(text, timeout=_SECONDS) is not None
        except TimeoutError:
            self.timeouts += 1
            return False

    def obligation(self, segment: str) -> dict[str, Any]:
        """Return the obligation that the rule makes of a segment, in the form of the model's."""
        known = self.extraction.model_dump()
        return {**known, "text": segment, "confidence_score": self.confidence, "is_subjective": False}


@dataclass(slots=True)
class RulesLibrary:
    """Hold the rules of a module, the best first, and what is wrong with some."""

    rules: list[Rule] = field(default_factory=list)
    faults: list[str] = field(default_factory=list)

    @staticmethod
    def of(rows: Sequence[tuple[str, str | None, float, Any]]) -> RulesLibrary:
        """Return the library of (id, pattern, confidence, extraction). A rule that can't be read is left out."""
        library = RulesLibrary()
        for id_, pattern, confidence, extraction in rows:
            try:
                library.rules.append(Rule(id_, _compile(pattern), confidence, _read(extraction)))
            except ValueError as error:
                library.faults.append(f"rule {id_} is left out: {error}")
        return library

    def find(self, segment: str) -> Rule | None:
        """Return the first rule that matches, whatever the lines' ends."""
        text = " ".join(segment.split())
        return next((rule for rule in self.rules if rule.matches(text)), None)

    @property
    def warnings(self) -> list[str]:
        slow = [f"rule {rule.id} timed out {rule.timeouts} times" for rule in self.rules if rule.timeouts]
        return [clean(words) for words in (*self.faults, *slow)]


def _compile(pattern: str | None) -> Pattern[str]:
    import regex

    if not pattern:
        raise ValueError("it has no pattern")
    try:
        return regex.compile(pattern, regex.IGNORECASE)
    except regex.error as error:
        raise ValueError(f"its pattern is wrong, {error}") from None


def _read(extraction: Mapping[str, Any]) -> RuleExtraction:
    try:
        return RuleExtraction.model_validate(extraction)
    except ValidationError as error:
        places = ", ".join(".".join(map(str, fault["loc"])) or "extraction" for fault in error.errors())
        raise ValueError(f"its extraction is wrong, {places}") from None
