"""The laptop's queues: no call walks the messages that it does not concern, and all behave as moto's own do."""

from __future__ import annotations

import json
import subprocess
import sys
from typing import Any

from local.stack import ROOT

FEW, MANY = "20", "400"


def said(*words: str) -> Any:
    command = [sys.executable, "-m", "tests.support.moto_queues", *words]
    return json.loads(subprocess.run(command, capture_output=True, text=True, check=True, cwd=ROOT).stdout)


def test_calls_take_as_many_steps_in_long_queues() -> None:
    few, many = said("taught", "steps", FEW, MANY)
    assert many == few


def test_moto_still_has_to_be_taught_queues() -> None:
    few, many = said("plain", "steps", FEW, "60")
    assert all(many[call] > few[call] for call in few)


def test_taught_queues_answer_as_motos_own() -> None:
    assert said("taught", "walk") == said("plain", "walk")
