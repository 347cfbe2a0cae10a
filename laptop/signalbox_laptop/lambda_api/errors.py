"""Define what the Invoke API refuses, each with the status, code and body that AWS Lambda gives it.

A fault concerns the call, not the function: a function that raises is a result, with its error inside.
"""

from __future__ import annotations

import json


class LambdaFault(Exception):
    """The service could not do what was asked, through a fault of its own."""

    status = 500
    code = "ServiceException"
    blame = "Service"

    def body(self) -> bytes:
        return json.dumps({"Type": self.blame, "Message": str(self)}).encode()


class FunctionUnknown(LambdaFault):
    """Nothing is deployed under that name and qualifier."""

    status = 404
    code = "ResourceNotFoundException"
    blame = "User"


class ParameterInvalid(LambdaFault):
    """The call, or the function's configuration, contains something that Lambda refuses."""

    status = 400
    code = "InvalidParameterValueException"
    blame = "User"


class ContentInvalid(LambdaFault):
    """The payload is not JSON."""

    status = 400
    code = "InvalidRequestContentException"
    blame = "User"


class RequestTooLarge(LambdaFault):
    """The payload exceeds the limit of its kind of invocation."""

    status = 413
    code = "RequestTooLargeException"
    blame = "User"


class Throttled(LambdaFault):
    """All the concurrency that the function may use is in use: the same call can succeed later."""

    status = 429
    code = "TooManyRequestsException"
    blame = "User"

    def __init__(self, reason: str) -> None:
        super().__init__("Rate Exceeded.")
        self.reason = reason

    def body(self) -> bytes:
        return json.dumps({"Reason": self.reason, "Type": self.blame, "message": str(self)}).encode()
