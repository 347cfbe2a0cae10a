"""Define the pack `forecasts`: the poller of upstream weather data, and a forecast platform's scheduled maintenance."""

from __future__ import annotations

from pathlib import Path

from forecasts.tasks import TASKS
from signalbox.packs.pack import Pack

PACK = Pack("forecasts", TASKS, Path(__file__).parent / "migrations")
