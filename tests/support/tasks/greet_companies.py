"""Submit a job for each of many companies."""

from __future__ import annotations

from collections.abc import Sequence

from signalbox.batches.fan_out import fan_out
from signalbox.ledger.context import Context, Done

COMPANIES = [f"company-{number:03d}" for number in range(250)]
ASKED: list[str] = []  # after which company each page began


def greet_companies(context: Context) -> Done:
    return fan_out(context, "greet_company", _find, lambda id_: {"company": id_})


def _find(after: str, limit: int) -> Sequence[str]:
    ASKED.append(after)
    return [name for name in COMPANIES if name > after][:limit]
