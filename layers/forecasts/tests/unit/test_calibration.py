"""Calibration's results are judged: what counts as coefficients, how far they moved, and our verdict on a candidate."""

from __future__ import annotations

from decimal import Decimal

import pytest

from forecasts.quality.calibration import (
    INFINITE,
    CalibrationVerdict,
    Coefficients,
    judge,
    largest_change,
    read_coefficients,
)

BOUND = Decimal("0.15")


def given(text: str) -> Coefficients:
    coefficients = read_coefficients(text)
    assert coefficients is not None
    return coefficients


def change(before: str, after: str) -> Decimal:
    return largest_change(given(before), given(after))


def test_coefficients_are_read_as_they_are_written() -> None:
    assert read_coefficients('{"gain": 1.15, "bias": -2, "drift": 1e-3}') == {
        "gain": Decimal("1.15"),
        "bias": Decimal(-2),
        "drift": Decimal("0.001"),
    }


@pytest.mark.parametrize(
    "text",
    [
        "{}",
        "[]",
        "[1]",
        "1",
        "null",
        '"gain"',
        '{"gain": "1"}',
        '{"gain": null}',
        '{"gain": true}',
        '{"gain": [1]}',
        '{"gain": {"a": 1}}',
        '{"gain": 1, "bias": "none"}',
        '{"gain": NaN}',
        '{"gain": Infinity}',
        '{"gain": 1e309}',
        '{"gain": -1e309}',
        '{"gain": ' + "9" * 5000 + "}",
        "[" * 5000 + "]" * 5000,
    ],
)
def test_anything_but_finite_numbers_by_name_is_no_coefficients(text: str) -> None:
    assert read_coefficients(text) is None


def test_the_largest_number_that_a_worker_can_hold_is_one() -> None:
    assert read_coefficients('{"gain": 1.7976931348623157e308}') is not None


@pytest.mark.parametrize(
    ("before", "after", "expected"),
    [
        ('{"a": 1}', '{"a": 1.00}', "0"),
        ('{"a": 1}', '{"a": 1.15}', "0.15"),
        ('{"a": 1.00}', '{"a": 0.85}', "0.15"),
        ('{"a": -2}', '{"a": -2.3}', "0.15"),
        ('{"a": 1}', '{"a": -1}', "2"),
        ('{"a": 2}', '{"a": 0}', "1"),
        ('{"a": 0}', '{"a": 0.0}', "0"),
        ('{"a": 1, "b": 10}', '{"a": 1.1, "b": 10.5}', "0.1"),
        ('{"a": 10, "b": 1}', '{"b": 1.2, "a": 11}', "0.2"),
    ],
)
def test_the_largest_relative_change_of_any_coefficient_counts(before: str, after: str, expected: str) -> None:
    assert change(before, after) == Decimal(expected)


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ('{"a": 0}', '{"a": 0.0001}'),
        ('{"a": 1}', '{"b": 1}'),
        ('{"a": 1}', '{"a": 1, "b": 1}'),
        ('{"a": 1, "b": 1}', '{"a": 1}'),
    ],
)
def test_coefficient_that_appears_vanishes_or_leaves_zero_exceeds_any_bound(before: str, after: str) -> None:
    assert change(before, after) == INFINITE
    assert judge(given(after), change(before, after), Decimal(1)) is CalibrationVerdict.WAITS


@pytest.mark.parametrize(
    ("after", "verdict"),
    [
        ("1.1499999999999999999", CalibrationVerdict.MISFILED),
        ("1.15", CalibrationVerdict.WAITS),
        ("1.1500000000000000001", CalibrationVerdict.WAITS),
        ("0.8500000000000000001", CalibrationVerdict.MISFILED),
        ("0.85", CalibrationVerdict.WAITS),
        ("0.8499999999999999999", CalibrationVerdict.WAITS),
    ],
)
def test_change_at_bound_waits_and_slightly_less_was_misfiled(after: str, verdict: CalibrationVerdict) -> None:
    proposed = given(f'{{"a": {after}}}')
    assert judge(proposed, largest_change(given('{"a": 1}'), proposed), BOUND) is verdict


def test_the_first_coefficients_of_a_tile_wait() -> None:
    assert judge(given('{"a": 1}'), None, BOUND) is CalibrationVerdict.WAITS


def test_missing_coefficients_are_invalid_after_any_history() -> None:
    assert judge(None, None, BOUND) is CalibrationVerdict.INVALID


def test_change_from_smallest_to_largest_number_can_be_compared() -> None:
    assert change('{"a": 1e-16000}', '{"a": 1e308}') > 1
