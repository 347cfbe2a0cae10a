"""Review what RunPod's workers have brought back, before they are asked again: candidates and coefficients.

Nothing is changed: what is wrong, or waits for a person, is logged, counted, and reported in the run's answer.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from decimal import Decimal
from typing import Any

from forecasts.quality.calibration import (
    INFINITE,
    CalibrationVerdict,
    Coefficients,
    judge,
    largest_change,
    read_coefficients,
)
from forecasts.settings import settings_of
from signalbox.ledger.context import Context
from signalbox.postgres.queries import load_queries

SQL = load_queries(__file__)
PAGE = 1000
# Lambda's answer is limited to six megabytes, and no person reads so many.
MOST_LISTED = 100
MOST_TOLD = Decimal(1000)
METRICS = {
    CalibrationVerdict.WAITS: "CalibrationCandidatesWaiting",
    CalibrationVerdict.MISFILED: "CalibrationCandidatesMisfiled",
    CalibrationVerdict.INVALID: "CalibrationCandidatesInvalid",
}


def review(context: Context) -> dict[str, Any]:
    """Return open candidates with our verdict, tiles without valid coefficients, and tiles changed beyond the bound."""
    bound = Decimal(str(settings_of(context).calibration_bound))
    candidates = [_look_at(context, row, bound) for row in _pages(context, "list_candidates")]
    for verdict, number in Counter(told["verdict"] for told in candidates).items():
        context.metrics.count(METRICS[CalibrationVerdict(verdict)], number)
    found: dict[str, Sequence[Any]] = {
        "candidates": candidates,
        "invalid_coefficients": _report(context, "invalid", list(_invalid(context))),
        "leapt_coefficients": _report(context, "leapt", list(_leapt(context, bound))),
    }
    told: dict[str, Any] = {name: listed[:MOST_LISTED] for name, listed in found.items() if listed}
    unlisted = sum(max(0, len(listed) - MOST_LISTED) for listed in found.values())
    return told | ({"unlisted": unlisted} if unlisted else {})


def _look_at(context: Context, row: tuple[Any, ...], bound: Decimal) -> dict[str, Any]:
    candidate_id, tile_id, proposed_text, reason, current_text = row
    proposed, current = read_coefficients(proposed_text), _read(current_text)
    change = None if proposed is None or current is None else largest_change(current, proposed)
    told = {
        "candidate_id": candidate_id,
        "tile_id": tile_id,
        "verdict": str(judge(proposed, change, bound)),
        "largest_change": None if change is None else _percent(change),
        "reason": reason[:200],
    }
    context.log.warning("candidate.listed", extra=told)
    return told


def _invalid(context: Context) -> Iterator[str]:
    for tile_id, text in _pages(context, "list_coefficients"):
        if read_coefficients(text) is None:
            yield tile_id


def _leapt(context: Context, bound: Decimal) -> Iterator[str]:
    """Yield tiles that a worker changed further than it may since it was last asked, without a person's approval."""
    for tile_id, before_text, after_text in context.db.execute(SQL["list_changed"]):
        before, after = read_coefficients(before_text), read_coefficients(after_text)
        if before is not None and after is not None and largest_change(before, after) >= bound:
            yield tile_id


def _report(context: Context, what: str, tiles: list[str]) -> list[str]:
    if tiles:
        context.metrics.count(f"CalibrationCoefficients{what.capitalize()}", len(tiles))
    for tile_id in tiles:
        context.log.warning(f"coefficients.{what}", extra={"tile_id": tile_id})
    return tiles


def _pages(context: Context, query: str) -> Iterator[tuple[Any, ...]]:
    """Yield rows, read in pages that each begin after the last row's first column."""
    after = ""
    while rows := context.db.execute(SQL[query], {"after": after, "now": context.now, "page": PAGE}).fetchall():
        yield from rows
        after = rows[-1][0]


def _read(text: str | None) -> Coefficients | None:
    return None if text is None else read_coefficients(text)


def _percent(change: Decimal) -> str:
    """Return a percentage, cut off at a limit: the largest change of all would fill pages."""
    if change == INFINITE:
        return "incomparable"
    return f"{change:.2%}" if change < MOST_TOLD else f"over {MOST_TOLD:.0%}"
