"""The header Retry-After is read for what it can mean, and never raises."""

from __future__ import annotations

import pytest

from signalbox.http.retry_after import LONGEST, seconds_to_wait


@pytest.mark.parametrize(
    ("given", "seconds"),
    [
        (None, None),
        ("17", 17),
        ("9" * 400, LONGEST),
        ("soon", None),
        ("-5", None),
        ("Fri, 02 Jan 1970 00:00:00 GMT", 0),
        ("Fri, 31 Dec 9999 23:59:58 GMT", LONGEST),
        ("Fri, 31 Dec 9999 23:59:59 -0100", None),
        (f"Fri, 31 Dec {'9' * 20} 23:59:59 GMT", None),
    ],
)
def test_header_means_seconds_or_nothing(given: str | None, seconds: float | None) -> None:
    assert seconds_to_wait(given) == seconds
