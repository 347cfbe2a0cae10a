"""Define the settings that the service is made with. It reads everything else through the AWS API."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path


@dataclass(frozen=True, slots=True, kw_only=True)
class ServiceSettings:
    """Configure one laptop's service. Times are in seconds."""

    # Where moto listens: the service reads deployments there, and writes logs there.
    moto_endpoint: str
    # Where functions find AWS, as AWS_ENDPOINT_URL: the laptop's front, so that a function can invoke another.
    public_endpoint: str
    # The stack's own folder; code, layers and each environment's temporary files live below it.
    home: Path
    # Added to every function's environment, below its own variables.
    extra_environment: Mapping[str, str] = field(default_factory=dict)
    addresses: Mapping[str, str] = field(default_factory=dict)  # variables with what only this machine knows
    # Secrets that a function need not look up: (variable, secret's ARN) to (variable, value) given instead.
    known_secrets: Mapping[tuple[str, str], tuple[str, str]] = field(default_factory=dict)
    # Waits before the first and the second retry of an asynchronous event: one and two minutes in AWS.
    retry_delays: tuple[float, float] = (1.0, 2.0)
    # The first wait after a throttle; it doubles up to ten times as long. One second to five minutes in AWS.
    throttle_delay: float = 0.2
    # An environment unused for this long is closed.
    idle_seconds: float = 300.0
    # The time that AWS gives the code outside the handler.
    init_seconds: float = 10.0
    # Processes that may run at once, over all functions: 1,000 in AWS, more than a laptop can carry.
    account_concurrency: int = 100
    # Batches of one mapping at once, if the mapping sets no maximum: AWS starts with five.
    mapping_concurrency: int = 5
    # How long a function's configuration is trusted, and how often mappings are listed. Changes that pass the front are
    # seen at once.
    refresh_seconds: float = 1.0
