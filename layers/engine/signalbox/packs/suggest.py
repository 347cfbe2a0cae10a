"""End a sentence about an unknown name."""

from __future__ import annotations

from collections.abc import Iterable

_NEAR = 0.6  # of difflib's ratio
_MOST_LISTED = 10


def nearest(name: str, known: Iterable[str], listed: str | None = None) -> str:
    """Return the end of a sentence about an unknown name: the name probably meant, or the known names.

    `listed` says what lists them, where there are too many for a line.
    """
    from difflib import get_close_matches

    names = sorted(known)
    begun = [one for one in names if name and one.startswith(name)]
    if close := get_close_matches(name, names, n=1, cutoff=_NEAR) or begun:
        return f"; did you mean '{close[0]}'?"
    if len(names) > _MOST_LISTED:
        return f"; {listed or _some(names)}"
    return f"; known are {', '.join(names)}" if names else "; no names are accepted here"


def _some(names: list[str]) -> str:
    return f"known are {', '.join(names[:_MOST_LISTED])} and {len(names) - _MOST_LISTED} more"
