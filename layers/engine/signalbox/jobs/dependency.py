"""Name a job that another job waits for."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal


@dataclass(frozen=True, slots=True)
class Dependency:
    """Name a job that must have ended, or succeeded, first."""

    job_id: str
    type: Literal["completion", "success"] = "success"
    on_failure: Literal["fail", "cancel", "proceed"] = "fail"
