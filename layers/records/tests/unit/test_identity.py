"""A document is the patient's as far as its names and birth dates agree with the profile's."""

from __future__ import annotations

from datetime import date
from decimal import Decimal

import pytest

from records.passes.identity import Subject, judge, names_agree

BORN = date(1980, 2, 29)
OTHER = date(1981, 2, 28)


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("Ana Lima", "ANA LIMA"),
        ("Lima, Ana", "Ana Lima"),
        ("Ana Lima", "Ana Maria Lima"),
        ("Ana Maria Lima", "Lima"),
        ("Zoë Groß", "zoe GROSS"),
        ("José", "Jose\u0301"),  # one character, and two
        ("Ｌｉｍａ", "Lima"),  # full width
        ("Jean-Luc O'Neil", "jean luc o neil"),
        ("Анна", "анна"),
        ("Ana Lima 2", "ana lima 2"),
        ("\u0930\u093e\u092e", "\u0930\u092e"),  # with a vowel sign, which is a mark
    ],
)
def test_names_with_the_same_words_agree(one: str, other: str) -> None:
    assert names_agree(one, other)
    assert names_agree(other, one)


@pytest.mark.parametrize(
    ("one", "other"),
    [("Ana Lima", "Ana Silva"), ("Ana", "Anna"), ("", "Ana"), ("", ""), ("--", "--"), ("O'Neil", "ONeil")],
)
def test_names_with_other_words_or_none_do_not_agree(one: str, other: str) -> None:
    assert not names_agree(one, other)
    assert not names_agree(other, one)


@pytest.mark.parametrize(
    ("name", "born", "patient_born", "score", "reason"),
    [
        ("Ana Lima", BORN, BORN, "0.00", None),
        ("Ana Lima", OTHER, BORN, "1.00", "birth_date_differs"),
        ("Eva Roth", OTHER, BORN, "1.00", "birth_date_differs"),
        ("Eva Roth", BORN, BORN, "0.50", "name_differs"),
        ("Ana Lima", None, BORN, "0.00", None),
        ("Ana Lima", OTHER, None, "0.00", None),
        ("Eva Roth", None, BORN, "0.60", "name_differs_birth_date_unknown"),
        ("Eva Roth", OTHER, None, "0.60", "name_differs_birth_date_unknown"),
        ("Eva Roth", None, None, "0.60", "name_differs_birth_date_unknown"),
    ],
)
def test_subject_is_compared_by_birth_date_and_name(
    name: str, born: date | None, patient_born: date | None, score: str, reason: str | None
) -> None:
    risk = judge([Subject(name, born, 3)], "Ana Lima", patient_born)
    assert risk.score == Decimal(score)
    said = {"subject": 1, "page": 3, "reason": reason, "score": float(score)}
    assert risk.reasons == ([said] if reason else [])


def test_worst_subject_decides_and_each_that_differs_is_named() -> None:
    subjects = [Subject("Ana Lima", BORN, 1), Subject("Eva Roth", BORN, 2), Subject("Ana Lima", OTHER, 4)]
    risk = judge(subjects, "Ana Lima", BORN)
    assert risk.score == 1
    assert [(one["subject"], one["page"], one["reason"]) for one in risk.reasons] == [
        (2, 2, "name_differs"),
        (3, 4, "birth_date_differs"),
    ]


@pytest.mark.parametrize(
    ("subjects", "score", "reviewed", "crosses"),
    [
        ([Subject("Ana Lima", BORN, 1)], 0, False, False),
        ([], 0.3, True, False),
        ([Subject("Eva Roth", BORN, 1)], 0.5, True, False),
        ([Subject("Eva Roth", None, 1)], 0.6, True, True),
        ([Subject("Eva Roth", OTHER, 1)], 1, True, True),
    ],
)
def test_flags_are_set_from_030_and_from_060(
    subjects: list[Subject], score: float, reviewed: bool, crosses: bool
) -> None:
    risk = judge(subjects, "Ana Lima", BORN)
    assert (float(risk.score), risk.needs_review, risk.crosses_profiles) == (score, reviewed, crosses)
    if not subjects:
        assert risk.reasons == [{"subject": None, "page": None, "reason": "no_subject", "score": 0.3}]
