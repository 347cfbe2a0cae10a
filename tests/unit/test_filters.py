"""Filters of jobs and of dead letters, as an operator gives them."""

from __future__ import annotations

import pytest

from signalbox.errors import IdRefused
from signalbox.operate.filters import DeadLetterFilter, JobFilter

ONE, TWO = "01a1f5ab-6ece-7d78-aa22-f7a61e63bba7", "01a1f5ab-6ece-7d78-aa22-f7a61e63bba8"


def test_a_job_that_is_named_twice_is_meant_once() -> None:
    assert JobFilter(ids=[TWO, ONE, TWO]).ids == [TWO, ONE]


@pytest.mark.parametrize("given", [{"ids": ["01A1F5AB"]}, {"parent": "x"}])
def test_what_is_no_id_of_a_job_is_refused(given: dict[str, object]) -> None:
    with pytest.raises(IdRefused, match="is not the id of a job"):
        JobFilter.model_validate(given)


def test_one_status_of_dead_letters_is_a_list_of_one() -> None:
    assert DeadLetterFilter(status="pending").values["statuses"] == ["pending"]
    assert DeadLetterFilter().values["statuses"] is None
