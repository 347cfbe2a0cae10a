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
from local.outside import ON, SWITCH, Outside
from local.rules.delivery import Deliveries
from local.rules.destination import Destinations
from local.rules.firing import Firing
from local.stack import Options
from local.transform import read_template
from signalbox.errors import SignalboxError
from signalbox.handoff import LIVE
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
    outside = Outside()
    parts.callback(outside.stop)
    outside.start()
    report(f"deploying {options.template.name}")
    _deploy(options, grounds, outside)
    service = _service(grounds, front.endpoint, outside)
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
        stand_ins=outside.addresses,
    )


def _front(port: int, moto: str) -> Front:
    try:
        return Front(port, moto)
    except PortBusy as error:
        raise PortTaken(str(error)) from None


def _deploy(options: Options, grounds: Grounds, outside: Outside) -> None:
    given = _parameters(options, grounds, outside)
    try:
        planned = plan(options.template, options.stack, given, registry_of)
    except SignalboxError as error:
        raise DeployFailed(f"template {options.template} asks for what this code does not have: {error}") from None
    deploy(planned, grounds.moto)


def _parameters(options: Options, grounds: Grounds, outside: Outside) -> Mapping[str, str]:
    """What on AWS is there before the stack, as far as the template asks for it, unless the person says otherwise."""
    declared = read_template(options.template).get("Parameters") or {}
    own: dict[str, str] = {}
    if "DatabaseSecretArn" in declared:
        secrets: SecretsManagerClient = client("secretsmanager", grounds.moto)
        made = secrets.create_secret(Name=f"{options.stack}-database", SecretString=grounds.database)
        own["DatabaseSecretArn"] = made["ARN"]
    if SWITCH in declared and options.parameters.get(SWITCH, ON) == ON:
        own |= {SWITCH: ON, **outside.furnish(options.stack, grounds.moto)}
    return {**own, **options.parameters}


def _service(grounds: Grounds, endpoint: str, outside: Outside) -> LambdaService:
    return LambdaService(
        ServiceSettings(
            moto_endpoint=grounds.moto,
            public_endpoint=endpoint,
            home=grounds.home,
            extra_environment={"SIGNALBOX_DATABASE_URL": grounds.database, **outside.environment},
        )
    )


def _migrate(service: LambdaService, function: str, report: Callable[[str], None]) -> None:
    try:
        service.function(function, LIVE)
    except FunctionUnknown:
        return report(f"no function {function}: nothing is migrated")
    report("applying migrations")
    result = service.invoke(function, b'{"action": "apply"}', qualifier=LIVE)
    if result.failed:
        error = json.loads(result.payload)
        raise LaptopError(f"the migrations failed: {error.get('errorType')}: {error.get('errorMessage')}")
    return None
