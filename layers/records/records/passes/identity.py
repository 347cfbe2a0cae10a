"""Judge by the names and birth dates in a document whether it is the patient's. Nothing here reads or writes."""

from __future__ import annotations

import unicodedata
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import date
from decimal import Decimal
from typing import Literal

_NOTHING = Decimal("0.00")
_CROSS_PROFILE, _MANUAL_REVIEW = Decimal("0.60"), Decimal("0.30")
Reason = Literal["birth_date_differs", "name_differs", "name_differs_birth_date_unknown", "no_subject"]
_SCORES: dict[Reason, Decimal] = {
    "birth_date_differs": Decimal("1.00"),
    "name_differs_birth_date_unknown": Decimal("0.60"),
    "name_differs": Decimal("0.50"),
    "no_subject": Decimal("0.30"),
}


@dataclass(frozen=True, slots=True)
class Subject:
    """Hold a person that a document is about, as a model read it."""

    name: str
    date_of_birth: date | None
    page: int


@dataclass(frozen=True, slots=True)
class Risk:
    """Hold how likely the document is another patient's, and which subjects say so."""

    score: Decimal
    reasons: list[dict[str, object]]

    @property
    def needs_review(self) -> bool:
        return self.score >= _MANUAL_REVIEW

    @property
    def crosses_profiles(self) -> bool:
        return self.score >= _CROSS_PROFILE


def judge(subjects: Sequence[Subject], name: str, date_of_birth: date | None) -> Risk:
    """Compare each subject with the patient; the worst one decides."""
    if not subjects:
        return Risk(_SCORES["no_subject"], [_reason(None, None, "no_subject")])
    found = [(place, one, _differs(one, name, date_of_birth)) for place, one in enumerate(subjects, 1)]
    reasons = [_reason(place, one.page, reason) for place, one, reason in found if reason is not None]
    return Risk(max((_SCORES[reason] for _, _, reason in found if reason is not None), default=_NOTHING), reasons)


def _reason(subject: int | None, page: int | None, reason: Reason) -> dict[str, object]:
    return {"subject": subject, "page": page, "reason": reason, "score": float(_SCORES[reason])}


def _differs(subject: Subject, name: str, date_of_birth: date | None) -> Reason | None:
    both_known = subject.date_of_birth is not None and date_of_birth is not None
    if both_known and subject.date_of_birth != date_of_birth:
        return "birth_date_differs"
    if names_agree(subject.name, name):
        return None
    return "name_differs" if both_known else "name_differs_birth_date_unknown"


def names_agree(one: str, other: str) -> bool:
    """Say whether all words of one of the names are in the other, whatever their case, accents and order."""
    words, others = _words(one), _words(other)
    return bool(words) and bool(others) and (words <= others or others <= words)


def _words(name: str) -> frozenset[str]:
    bare = "".join(one for one in unicodedata.normalize("NFKD", name) if not unicodedata.category(one).startswith("M"))
    return frozenset("".join(one if _in_word(one) else " " for one in bare.casefold()).split())


def _in_word(character: str) -> bool:
    return unicodedata.category(character)[0] == "L" or unicodedata.category(character) == "Nd"
