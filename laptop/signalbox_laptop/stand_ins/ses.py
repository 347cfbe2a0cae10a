"""Stand in for SES: it takes every mail, from any sender.

No mail goes on to moto: nobody reads the ones that moto was sent, and it takes them from verified identities only.
"""

from __future__ import annotations

from typing import ClassVar
from uuid import uuid4

from signalbox_laptop.lambda_api.http_server import Request, Response
from signalbox_laptop.stand_ins.message_stand_in import Message, MessageStandIn
from signalbox_laptop.stand_ins.service_stand_in import json_response, read_object


class SesStandIn(MessageStandIn):
    """Take the mails."""

    errors: ClassVar = {
        400: "BadRequestException",
        403: "AccessDeniedException",
        404: "NotFoundException",
        429: "TooManyRequestsException",
        500: "InternalFailure",
    }

    def read(self, request: Request) -> Message | None:
        if (request.method, request.path) != ("POST", "/v2/email/outbound-emails"):
            return None
        return Message("SendEmail", read_object(request))

    def accept(self, request: Request, message: Message) -> Response:
        return json_response({"MessageId": str(uuid4())})
