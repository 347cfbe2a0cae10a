"""Define the settings of the pack, read from its function's environment."""

from __future__ import annotations

from typing import ClassVar

from signalbox.packs.environment import EnvironmentSettings, StackName


class ComplianceSettings(EnvironmentSettings):
    """Define what the pack reads. Each field is the variable COMPLIANCE_<FIELD>."""

    prefix: ClassVar[str] = "COMPLIANCE_"

    bucket: StackName = "{stack}-compliance-{account}-{region}"
    model_id: str = "anthropic.claude-3-5-sonnet-20240620-v1:0"  # of Bedrock, or an inference profile
    public_url: StackName = "{http_api}"  # begins the links to packs of evidence
    links_secret: StackName = "{stack}/compliance/links"  # noqa: S105 - its name
