"""Write the PDF of a report. What the library can't do twice, it never can."""

from __future__ import annotations

from collections.abc import Sequence

from signalbox import Permanent, SignalboxError
from signalbox.documents.report import Part, report


def write_pdf(title: str, parts: Sequence[Part], footer: str = "") -> bytes:
    """Return the PDF; try once more where the library fails."""
    for is_last in (False, True):
        try:
            return report(title, parts, footer=footer)
        except SignalboxError:  # the job's time is over, or it was cancelled
            raise
        except Exception as error:
            if is_last:
                raise Permanent(f"the PDF can't be written: {type(error).__name__}") from error
    raise AssertionError("the last try returns or raises")
