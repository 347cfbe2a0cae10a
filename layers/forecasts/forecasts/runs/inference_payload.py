"""Define what RunPod's worker is asked to do. The model is the contract with the worker's code."""

from __future__ import annotations

from typing import Any, Literal

from pydantic import AwareDatetime, BaseModel, ConfigDict, Field

Model = Literal["medium_range", "nowcast"]


class TimeRange(BaseModel):
    """Cover the time from the first instant, up to but without the second."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    start: AwareDatetime
    end: AwareDatetime


class InputConfig(BaseModel):
    """Say where the worker finds its input."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    references: tuple[str, ...] = ()  # s3:// or https:// prefixes and objects
    calibration: dict[str, Any] = Field(default_factory=dict)  # tile → coefficients


class InferencePayload(BaseModel):
    """Describe one request."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    version: Literal[1] = 1
    task_type: Literal["forecast", "verification", "calibration"]
    model: Model
    run_timestamp: AwareDatetime
    forecast_run_id: str | None = None
    input_config: InputConfig = InputConfig()
    verification_window: TimeRange | None = None
    calibration_time_range: TimeRange | None = None
    tiles: tuple[str, ...] = ()
    storage_prefix: str | None = None
