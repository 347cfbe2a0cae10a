"""Define the settings of the pack, read from its function's environment."""

from __future__ import annotations

from typing import ClassVar

from signalbox.packs.environment import EnvironmentSettings


class RecordsSettings(EnvironmentSettings):
    """Define what the pack reads. Each field is the variable RECORDS_<FIELD>."""

    prefix: ClassVar[str] = "RECORDS_"

    bucket: str | None = None  # None: the jobs' bucket
    model_id: str = "anthropic.claude-3-5-sonnet-20240620-v1:0"  # of Bedrock, or an inference profile
