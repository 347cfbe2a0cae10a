"""The root over leaves is that of an independent implementation, and each leaf has a path to it."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from passports.encoding.canonical import sha256
from passports.issuing.merkle import root_of
from tests.support import verify_passport

Path = list[tuple[bool, bytes]]


def path_of(leaves: list[bytes], place: int) -> Path:
    """Return the neighbours of a leaf from below, each with whether it stands to the left."""
    if len(leaves) == 1:
        return []
    split = 1
    while 2 * split < len(leaves):
        split *= 2
    left, right = leaves[:split], leaves[split:]
    if place < split:
        return [*path_of(left, place), (False, verify_passport.root_of(right))]
    return [*path_of(right, place - split), (True, verify_passport.root_of(left))]


def climb(leaf: bytes, path: Path) -> bytes:
    node = sha256(b"\x00" + leaf)
    for is_left, other in path:
        node = sha256(b"\x01" + (other + node if is_left else node + other))
    return node


@pytest.mark.parametrize("count", range(10))
def test_each_leaf_has_a_path_to_the_root(count: int) -> None:
    leaves = [bytes([number]) * number for number in range(count)]
    root = root_of(leaves)
    assert root == verify_passport.root_of(leaves)
    assert [climb(leaf, path_of(leaves, place)) for place, leaf in enumerate(leaves)] == [root] * count


@given(st.lists(st.binary(max_size=70), max_size=40))
def test_two_implementations_agree(leaves: list[bytes]) -> None:
    assert root_of(leaves) == verify_passport.root_of(leaves)


@given(st.lists(st.binary(max_size=8), min_size=1, max_size=9), st.data())
def test_every_change_changes_the_root(leaves: list[bytes], data: st.DataObject) -> None:
    place = data.draw(st.integers(0, len(leaves) - 1))
    changed = [*leaves[:place], leaves[place] + b"!", *leaves[place + 1 :]]
    for others in (changed, leaves[:-1], [*leaves, leaves[-1]], [root_of(leaves)]):
        assert root_of(others) != root_of(leaves)


def test_empty_tree_has_the_hash_of_nothing() -> None:
    assert root_of([]).hex()[:8] == "e3b0c442"


def test_odd_last_leaf_moves_up_as_it_is() -> None:
    a, b, c = (sha256(b"\x00" + leaf) for leaf in (b"a", b"b", b"c"))
    assert root_of([b"a", b"b", b"c"]) == sha256(b"\x01" + sha256(b"\x01" + a + b) + c)
    assert root_of([b"a"]) == a
