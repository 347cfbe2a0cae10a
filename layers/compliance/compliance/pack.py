"""Define the pack `compliance`: an environmental-compliance product's background jobs."""

from __future__ import annotations

from pathlib import Path

from compliance.job_types import JOB_TYPES
from compliance.tasks import TASKS
from signalbox import Pack
from signalbox.packs.pack import PackRoute

PACK = Pack(
    "compliance",
    TASKS,
    Path(__file__).parent / "migrations",
    JOB_TYPES,
    routes=(PackRoute("GET", "/shared/packs/{token}", "compliance.sharing.links.open_pack"),),
)
