"""Pieces are whole pages with room for their text; an answer without room is asked for again."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from records.intake.lines import estimate_tokens, is_complex
from records.passes.pieces import Place
from signalbox.documents.line import Line

NOWHERE = (0.0, 0.0, 0.0, 0.0)


def pieces(sizes: list[int]) -> list[tuple[int, int]]:
    found, place = [], Place()
    while place.page < len(sizes):
        end = place.end(sizes)
        found.append((place.page, end))
        place = Place.of(place.after(end).cursor())
    return found


def test_piece_takes_pages_of_12000_tokens_at_most() -> None:
    assert pieces([24_000, 24_000, 1]) == [(0, 2), (2, 3)]
    assert pieces([24_000, 24_001]) == [(0, 1), (1, 2)]


def test_longer_page_stands_alone() -> None:
    assert pieces([1, 48_001, 1]) == [(0, 1), (1, 2), (2, 3)]


@given(st.lists(st.integers(0, 60_000), min_size=1, max_size=30))
def test_each_page_is_in_one_piece(sizes: list[int]) -> None:
    found = pieces(sizes)
    assert [page for start, end in found for page in range(start, end)] == list(range(len(sizes)))
    assert all(end - start == 1 or sum(sizes[start:end]) <= 48_000 for start, end in found)


def test_half_of_an_odd_number_of_pages_is_rounded_up() -> None:
    half = Place().halved(5)
    assert half is not None
    assert (half.piece, half.page, half.ends) == (0, 0, (3, 5))
    assert half.end([1] * 8) == 3
    rest = half.after(3)
    assert (rest.piece, rest.page, rest.end([1] * 8)) == (1, 3, 5)
    assert rest.after(5).end([1] * 8) == 8


def test_half_of_a_half_leaves_all_others_in_their_order() -> None:
    half = Place().halved(8)
    assert half is not None
    quarter = half.halved(half.end([1] * 8))
    assert quarter is not None
    assert quarter.ends == (2, 4, 8)


def test_one_page_has_no_half() -> None:
    assert Place(page=3).halved(4) is None


def test_more_room_is_for_this_piece_alone() -> None:
    place = Place().with_more_room()
    assert (place.is_long, place.after(1).is_long, Place.of(place.cursor())) == (True, False, place)


def test_cursor_holds_numbers_alone() -> None:
    half = Place().halved(5)
    assert half is not None
    numbers = [one for value in half.cursor().values() for one in (value if isinstance(value, list) else [value])]
    assert {type(one) for one in numbers} == {int}


def lines(*characters: int) -> list[list[Line]]:
    return [[Line("x" * count, 1, NOWHERE)] for count in characters]


def test_tokens_are_a_quarter_of_the_characters_and_100_a_page() -> None:
    assert estimate_tokens(lines(4000, 1)) == 1201
    assert estimate_tokens([[Line("é𝄞", 1, NOWHERE), Line("ab", 1, NOWHERE)]]) == 101


def test_file_is_complex_above_30000_tokens_or_ten_pages() -> None:
    assert [is_complex(30_000, 10), is_complex(30_001, 10), is_complex(0, 11)] == [False, True, True]
