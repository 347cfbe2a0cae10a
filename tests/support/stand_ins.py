"""Instruct the stand-ins for AWS's services, and call them by boto3 as a function does."""

from __future__ import annotations

from typing import Any

import urllib3
from botocore.config import Config

from signalbox_laptop.aws import session


def caller(service: str, url: str, read_timeout: float = 20) -> Any:
    """Return a client that calls once."""
    make: Any = session().client
    return make(service, endpoint_url=url, config=Config(retries={"total_max_attempts": 1}, read_timeout=read_timeout))


def instruct(url: str, instruction: str, told: object, method: str = "PUT") -> None:
    answer = urllib3.request(method, f"{url}/_stand_in/{instruction}", json=told)
    assert answer.status == 200, answer.data


def refused(url: str, instruction: str, body: bytes) -> str:
    """Return why an instruction is refused."""
    answer = urllib3.request("PUT", f"{url}/_stand_in/{instruction}", body=body)
    assert answer.status == 400
    return str(answer.json()["message"])


def calls_of(url: str) -> list[dict[str, Any]]:
    calls: list[dict[str, Any]] = urllib3.request("GET", f"{url}/_stand_in/calls").json()["calls"]
    return calls
