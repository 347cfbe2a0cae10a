"""The stack's parts put together, once PostgreSQL and AWS's stand-in are up: deployed, served, migrated, ticking.

What is deployed is read back through the API by each part; only the deploy itself reads the template.
"""

from __future__ import annotations

import json
import os
import threading
from collections.abc import Callable, Mapping
from contextlib import ExitStack
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING

from local.aws import REGION, client
from local.control import Control
from local.deploy import deploy, plan
from local.errors import DeployFailed, LaptopError, PortTaken
from local.home import State
from local.lambda_service.faults import FunctionUnknown
from local.lambda_service.front import Front, PortBusy
from local.lambda_service.service import LambdaService
from local.lambda_service.settings import ServiceSettings
from local.rules.delivery import Deliveries
from local.rules.destination import Destinations
from local.rules.firing import Firing
from local.stack import Options
from local.transform import read_template
from signalbox.errors import SignalboxError
from signalbox.packs import registry_of

if TYPE_CHECKING:
    from mypy_boto3_secretsmanager import SecretsManagerClient


@dataclass(frozen=True, slots=True)
class Grounds:
    """What everything else stands on."""

    home: Path
    database: str
    moto: str


def assemble(
    options: Options, grounds: Grounds, stop: threading.Event, parts: ExitStack, report: Callable[[str], None]
) -> State:
    """Deploy and serve. The parts register their ends in order, and end in reverse."""
    front = _front(options.port, grounds.moto)
    parts.callback(front.stop)
    report(f"deploying {options.template.name}")
    _deploy(options, grounds)
    service = _service(grounds, front.endpoint)
    parts.callback(service.stop)
    service.start()
    deliveries = Deliveries(Destinations.at(grounds.moto, service.enqueue))
    parts.callback(deliveries.stop)
    firing = Firing(grounds.moto, deliveries)
    parts.callback(firing.stop)
    front.start(service, Control(service, firing, deliveries, stop))
    _migrate(service, f"{options.stack}-migrator", report)
    if options.clock:
        firing.start_clock()
    return State(
        stack=options.stack,
        endpoint=front.endpoint,
        database=grounds.database,
        region=REGION,
        api=None,
        pid=os.getpid(),
        started_at=datetime.now(UTC).isoformat(timespec="seconds"),
    )


def _front(port: int, moto: str) -> Front:
    try:
        return Front(port, moto)
    except PortBusy as error:
        raise PortTaken(str(error)) from None


def _deploy(options: Options, grounds: Grounds) -> None:
    given = {**_own_parameters(options, grounds), **options.parameters}
    try:
        planned = plan(options.template, options.stack, given, registry_of)
    except SignalboxError as error:
        raise DeployFailed(f"template {options.template} asks for what this code does not have: {error}") from None
    deploy(planned, grounds.moto)


def _own_parameters(options: Options, grounds: Grounds) -> Mapping[str, str]:
    """What on AWS is there before the stack: the secret that opens the database."""
    if "DatabaseSecretArn" not in (read_template(options.template).get("Parameters") or {}):
        return {}
    secrets: SecretsManagerClient = client("secretsmanager", grounds.moto)
    made = secrets.create_secret(Name=f"{options.stack}-database", SecretString=grounds.database)
    return {"DatabaseSecretArn": made["ARN"]}


def _service(grounds: Grounds, endpoint: str) -> LambdaService:
    return LambdaService(
        ServiceSettings(
            moto_endpoint=grounds.moto,
            public_endpoint=endpoint,
            home=grounds.home,
            extra_environment={"SIGNALBOX_DATABASE_URL": grounds.database},
        )
    )


def _migrate(service: LambdaService, function: str, report: Callable[[str], None]) -> None:
    try:
        service.function(function)
    except FunctionUnknown:
        return report(f"no function {function}: nothing is migrated")
    report("applying migrations")
    result = service.invoke(function, b'{"action": "apply"}')
    if result.failed:
        error = json.loads(result.payload)
        raise LaptopError(f"the migrations failed: {error.get('errorType')}: {error.get('errorMessage')}")
    return None
