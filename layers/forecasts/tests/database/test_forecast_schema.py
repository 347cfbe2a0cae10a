"""The pack's poll_data replaces the stand-in of the engine."""

from __future__ import annotations

from signalbox.testing.stage import Stage


def test_the_pack_takes_the_place_of_the_engines_stand_in(stage: Stage) -> None:
    assert stage.app.resources.tasks.find("poll_data").module == "forecasts.tasks.poll_data"
