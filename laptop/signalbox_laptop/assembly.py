"""Assemble the stack once PostgreSQL and AWS's stand-in are up: deploy, serve, migrate, and start the clock.

Each part reads what is deployed through the API; only the deploy itself reads the template.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Mapping
from contextlib import ExitStack
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING

import psycopg

from signalbox.access.caller import Role
from signalbox.access.tokens import create_token, revoke_any
from signalbox.engine_pack import registry_of
from signalbox.errors import SignalboxError
from signalbox_laptop.aws import REGION, client
from signalbox_laptop.control_api import Control
from signalbox_laptop.deploy.custom_resources import CustomResource, create
from signalbox_laptop.deploy.deploy import deploy, plan
from signalbox_laptop.deploy.template import read_template
from signalbox_laptop.errors import DeployFailed, PortTaken
from signalbox_laptop.event_sources.clock import Firing
from signalbox_laptop.event_sources.delivery import Deliveries
from signalbox_laptop.event_sources.destination import Destinations
from signalbox_laptop.home import StackState
from signalbox_laptop.lambda_api.endpoint import Front, PortBusy
from signalbox_laptop.lambda_api.http_api import HttpApi
from signalbox_laptop.lambda_control.service import LambdaService
from signalbox_laptop.lambda_control.settings import ServiceSettings
from signalbox_laptop.packs import StandIns
from signalbox_laptop.postgres.db_users import LogIns, make_log_ins
from signalbox_laptop.up import StackOptions

if TYPE_CHECKING:
    from mypy_boto3_apigatewayv2 import ApiGatewayV2Client
    from mypy_boto3_secretsmanager import SecretsManagerClient


# Map each parameter that names a secret to the log-in that the secret holds.
_SECRETS = {"DatabaseSecretArn": "owner", "WriterSecretArn": "writer", "ReaderSecretArn": "reader"}


@dataclass(frozen=True, slots=True)
class Endpoints:
    """Describe what everything else stands on."""

    home: Path
    database: str
    moto: str


def assemble(
    options: StackOptions, grounds: Endpoints, stop: threading.Event, parts: ExitStack, report: Callable[[str], None]
) -> StackState:
    """Deploy and serve. The parts register how they stop, and stop in reverse order."""
    front = _front(options.port, grounds.moto)
    parts.callback(front.stop)
    outside = StandIns(grounds.moto)
    parts.callback(outside.stop)
    outside.start()
    report(f"deploying {options.template.name}")
    log_ins = make_log_ins(grounds.database)
    secrets = _store_log_ins(options, grounds, log_ins)
    to_make = _deploy(options, grounds, outside, secrets)
    addresses: dict[str, str] = {}
    service = _service(grounds, front.endpoint, outside, addresses, log_ins, secrets)
    parts.callback(service.stop)
    if http_api := _http_api(front, grounds, service):
        parts.callback(http_api.stop)
        addresses["SIGNALBOX_HTTP_API"] = http_api.address  # before a function starts
    service.start()
    deliveries = Deliveries(Destinations.at(grounds.moto, service.enqueue))
    parts.callback(deliveries.stop)
    firing = Firing(grounds.moto, deliveries)
    parts.callback(firing.stop)
    front.start(service, Control(service, firing, deliveries, stop))
    # Before the clock runs and the address is announced: nothing takes traffic until these have been made.
    for resource in to_make:
        create(service, resource, report)
    if http_api:
        http_api.start()
    if options.clock:
        firing.start_clock()
    return StackState(
        stack=options.stack,
        endpoint=front.endpoint,
        database=grounds.database,
        region=REGION,
        api=http_api.address if http_api else None,
        token=_token(grounds.database) if http_api else None,
        pid=os.getpid(),
        started_at=datetime.now(UTC).isoformat(timespec="seconds"),
        stand_ins=outside.addresses,
    )


def _http_api(front: Front, grounds: Endpoints, service: LambdaService) -> HttpApi | None:
    """Make the HTTP API that was deployed, if one was, beside the endpoint: on the next port if that is free."""
    gateway: ApiGatewayV2Client = client("apigatewayv2", grounds.moto)
    for api in gateway.get_apis()["Items"]:
        [integration] = gateway.get_integrations(ApiId=api["ApiId"])["Items"]
        return HttpApi(front.port + 1, integration["IntegrationUri"], service)
    return None


def _token(database: str) -> str:
    """Return a new token of an operator; the one of the last time is revoked."""
    with psycopg.connect(database, autocommit=True) as db:
        revoke_any(db, "laptop", by="signalbox up")
        made = create_token(db, "laptop", Role.OPERATOR, tenant=None, by="signalbox up", expires_at=None)
        return str(made["token"])


def _front(port: int, moto: str) -> Front:
    try:
        return Front(port, moto)
    except PortBusy as error:
        raise PortTaken(str(error)) from None


def _deploy(
    options: StackOptions, grounds: Endpoints, outside: StandIns, secrets: Mapping[str, str]
) -> list[CustomResource]:
    given = _parameters(options, grounds, outside, secrets)
    try:
        planned = plan(options.template, options.stack, given, registry_of)
    except SignalboxError as error:
        raise DeployFailed(f"template {options.template} asks for what this code does not have: {error}") from None
    return deploy(planned, grounds.moto)


def _store_log_ins(options: StackOptions, grounds: Endpoints, log_ins: LogIns) -> dict[str, str]:
    """Make a secret for each parameter of the template that asks for one; return the ARNs by parameter."""
    declared = read_template(options.template).get("Parameters") or {}
    secrets: SecretsManagerClient = client("secretsmanager", grounds.moto)
    return {
        parameter: secrets.create_secret(Name=f"{options.stack}-{user}", SecretString=getattr(log_ins, user))["ARN"]
        for parameter, user in _SECRETS.items()
        if parameter in declared
    }


def _parameters(
    options: StackOptions, grounds: Endpoints, outside: StandIns, secrets: Mapping[str, str]
) -> Mapping[str, str]:
    """Return parameters for what exists on AWS before the stack, if the template asks; the person's values win."""
    declared = read_template(options.template).get("Parameters") or {}
    furnished = outside.furnish(options.stack, grounds.moto, declared, options.parameters)
    return {**secrets, **furnished, **options.parameters}


def _service(  # noqa: PLR0917
    grounds: Endpoints,
    endpoint: str,
    outside: StandIns,
    addresses: Mapping[str, str],
    log_ins: LogIns,
    secrets: Mapping[str, str],
) -> LambdaService:
    known = {arn: getattr(log_ins, _SECRETS[parameter]) for parameter, arn in secrets.items()}
    return LambdaService(
        ServiceSettings(
            moto_endpoint=grounds.moto,
            public_endpoint=endpoint,
            home=grounds.home,
            extra_environment={"SIGNALBOX_DATABASE_URL": grounds.database, **outside.environment},
            addresses=addresses,
            known_secrets={
                (f"SIGNALBOX_{name}_SECRET_ARN", arn): (f"SIGNALBOX_{name}_URL", dsn)
                for name in ("DATABASE", "READER")
                for arn, dsn in known.items()
            },
        )
    )
