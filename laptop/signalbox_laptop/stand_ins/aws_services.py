"""Own the stand-ins for the services of AWS that packs share: moto lacks them, or can't be told to fail."""

from __future__ import annotations

from collections.abc import Mapping

from signalbox_laptop.stand_ins.bedrock import BedrockStandIn
from signalbox_laptop.stand_ins.service_stand_in import ServiceStandIn
from signalbox_laptop.stand_ins.ses import SesStandIn
from signalbox_laptop.stand_ins.sns import SnsStandIn
from signalbox_laptop.stand_ins.textract import TextractStandIn

# The variable that leads boto3 to each; it wins over AWS_ENDPOINT_URL, which leads to moto.
_VARIABLES = {
    "bedrock": "AWS_ENDPOINT_URL_BEDROCK_RUNTIME",
    "textract": "AWS_ENDPOINT_URL_TEXTRACT",
    "ses": "AWS_ENDPOINT_URL_SESV2",
    "sns": "AWS_ENDPOINT_URL_SNS",
}


class AwsServices:
    """Start and stop them together."""

    def __init__(self, moto: str) -> None:
        self._services: Mapping[str, ServiceStandIn] = {
            "bedrock": BedrockStandIn(),
            "textract": TextractStandIn(),
            "ses": SesStandIn(moto),
            "sns": SnsStandIn(moto),
        }

    def start(self) -> None:
        for service in self._services.values():
            service.start()

    def stop(self) -> None:
        for service in self._services.values():
            service.stop()

    @property
    def addresses(self) -> dict[str, str]:
        return {name: service.url for name, service in self._services.items()}

    @property
    def environment(self) -> dict[str, str]:
        return {_VARIABLES[name]: url for name, url in self.addresses.items()}
