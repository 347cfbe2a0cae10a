"""Watching a backfill invokes its driver when needed, and shows the progress."""

from __future__ import annotations

import pytest

from signalbox_cli.backfill_progress import Quiet, ended, note, wants_nudge


def slots(**counts: int) -> dict[str, int]:
    names = ("pending", "dispatched", "succeeded", "failed", "skipped", "cancelled")
    counted = dict.fromkeys(names, 0) | counts
    return {"total": sum(counted.values()), **counted}


@pytest.mark.parametrize(
    ("counts", "quiet", "nudges"),
    [
        # Slots at work will be heard of.
        (slots(dispatched=1, pending=5), 1000, False),
        # The rate leaves no room for more in this minute.
        (slots(pending=5, succeeded=5), 30, False),
        (slots(pending=5, succeeded=5), 57, True),
        # All has ended: only the driver can close the backfill.
        (slots(succeeded=5), 0, True),
        # But a failed slot may be on its way again.
        (slots(succeeded=4, failed=1), 2, False),
        (slots(succeeded=4, failed=1), 6, True),
    ],
)
def test_driver_is_invoked_only_if_it_would_find_work(counts: dict[str, int], quiet: float, nudges: bool) -> None:
    assert wants_nudge(counts, quiet) is nudges


def test_quiet_is_measured_from_the_last_change() -> None:
    quiet = Quiet(slots(pending=2), 0.0)
    assert quiet.note({"slots": slots(pending=2)}, 10.0) == 10.0
    assert quiet.note({"slots": slots(pending=1, succeeded=1)}, 11.0) == 0.0
    assert quiet.note({"slots": slots(pending=1, succeeded=1)}, 14.0) == 3.0


def test_what_the_bar_counts_has_ended_one_way_or_another() -> None:
    counts = slots(pending=3, dispatched=2, succeeded=5, failed=1, skipped=4, cancelled=1)
    assert ended(counts) == 11
    assert note(counts) == "2 at work, 1 failed"
