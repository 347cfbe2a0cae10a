"""Text is divided at blank lines and condition numbers, and no chunk is longer than it may be."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from compliance.documents.segments import halves, join, join_pages, split

WORDS = st.text(alphabet="ab \n", min_size=1, max_size=60)


@pytest.mark.parametrize(
    "line",
    ["1.2 The operator", "3.1.2(a) The operator", "4) keep", "5. keep", "Condition 6: keep", "7 The operator", "3.1"],
)
def test_condition_number_begins_a_segment(line: str) -> None:
    assert split(f"before\n{line}\nafter") == ["before", f"{line}\nafter"]


@pytest.mark.parametrize("line", ["12 months after", "conditions 5 apply", "2026-01-01", "a 1.2", "3.1mg"])
def test_other_lines_go_on(line: str) -> None:
    assert split(f"before\n{line}") == [f"before\n{line}"]


def test_blank_lines_and_pages_end_a_segment() -> None:
    assert split(join_pages(["one\ntwo\n \n three", "", "four"])) == ["one\ntwo", "three", "four"]


def test_segments_fill_a_chunk_to_its_end() -> None:
    assert join(["a" * 4, "b" * 4, "c"], most=10) == ["aaaa\n\nbbbb", "c"]
    assert join(["a" * 5, "b" * 4, "c" * 21], most=10) == ["aaaaa", "bbbb", "c" * 10, "c" * 10, "c"]


@given(st.lists(WORDS), st.integers(3, 40))
def test_chunks_lose_nothing_and_are_bounded(texts: list[str], most: int) -> None:
    segments = [segment for text in texts for segment in split(text)]
    chunks = join(segments, most)
    assert all(0 < len(chunk) <= most for chunk in chunks)
    assert "".join("".join(chunks).split()) == "".join("".join(segments).split())


@pytest.mark.parametrize(
    ("chunk", "parts"),
    [
        ("a\n\nb\n\ncc dd", ["a\n\nb", "cc dd"]),
        ("one\ntwo", ["one", "two"]),
        (" one two ", ["one", "two"]),
        ("one", ["one"]),
    ],
)
def test_halves_are_cut_at_the_best_place(chunk: str, parts: list[str]) -> None:
    assert halves(chunk) == parts
