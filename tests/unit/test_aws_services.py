"""boto3 finds the stand-ins for AWS's services by variables, and everything else elsewhere."""

from __future__ import annotations

from typing import Any

import pytest

from signalbox_laptop.aws import session
from signalbox_laptop.stand_ins.aws_services import AwsServices

ELSEWHERE = "http://127.0.0.1:9"


def test_boto3_finds_each_service_by_the_functions_variables(monkeypatch: pytest.MonkeyPatch) -> None:
    services, make = AwsServices(ELSEWHERE), session().client
    for name, value in {"AWS_ENDPOINT_URL": ELSEWHERE, **services.environment}.items():
        monkeypatch.setenv(name, value)
    led: Any = {name: make(name).meta.endpoint_url for name in ("bedrock-runtime", "textract", "sesv2", "sns", "sqs")}
    services.stop()
    assert list(led.values()) == [*services.addresses.values(), ELSEWHERE]
