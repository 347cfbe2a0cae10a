"""Hash leaves to one root, from which nobody can take a leaf or exchange one unnoticed."""

from __future__ import annotations

from collections.abc import Sequence

from passports.encoding.canonical import sha256


def root_of(leaves: Sequence[bytes]) -> bytes:
    """Return the root over the leaves in their order; the odd last node of a level moves up as it is."""
    level = [sha256(b"\x00" + leaf) for leaf in leaves]
    while len(level) > 1:
        pairs = [sha256(b"\x01" + left + right) for left, right in zip(level[::2], level[1::2], strict=False)]
        level = pairs + level[2 * len(pairs) :]
    return level[0] if level else sha256(b"")
