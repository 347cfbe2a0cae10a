"""Define the settings of the pack, read from its function's environment."""

from __future__ import annotations

from typing import ClassVar

from signalbox.packs.environment import EnvironmentSettings


class PassportSettings(EnvironmentSettings):
    """Define what the pack reads. Each field is the variable PASSPORTS_<FIELD>."""

    prefix: ClassVar[str] = "PASSPORTS_"

    build_id: str = "0.1.0"  # of the compiler, which stands in each receipt
    signing_secret_arn: str | None = None
