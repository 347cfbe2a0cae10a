"""Define what the HTTP API refuses beside what its operations do, and the status of each refusal."""

from __future__ import annotations

from collections.abc import Sequence

from signalbox import errors
from signalbox.errors import PayloadRefused, Refused, SignalboxError, Unavailable


class RouteUnknown(Refused):
    """Nothing is served at this path."""


class MethodRefused(Refused):
    """The path does not take this method."""

    def __init__(self, message: str, allowed: Sequence[str]) -> None:
        super().__init__(message)
        self.allowed = allowed


class BodyMalformed(PayloadRefused):
    """The body is no JSON object."""


class BodyTooLarge(PayloadRefused):
    """The body has more bytes than a request may have."""


class KeyReused(Refused):
    """The Idempotency-Key was given with another request."""


class RequestInProgress(Refused):
    """A request with this Idempotency-Key is at work."""


class IssuerUnavailable(Unavailable):
    """The issuer of tokens does not answer, or not with keys."""


# The first that fits. A refusal that is not listed is a 422: the request can be read, and something in it is wrong.
_STATUSES: Sequence[tuple[type[SignalboxError], int]] = (
    (BodyMalformed, 400),
    (errors.Unauthenticated, 401),
    (errors.Forbidden, 403),
    (RouteUnknown, 404),
    (errors.JobUnknown, 404),
    (errors.DeadLetterUnknown, 404),
    (errors.BackfillUnknown, 404),
    (errors.BulkActionUnknown, 404),
    (errors.GroupUnknown, 404),
    (errors.ScheduleUnknown, 404),
    (MethodRefused, 405),
    (errors.TransitionRefused, 409),
    (RequestInProgress, 409),
    (BodyTooLarge, 413),
    (errors.SchemaMismatch, 503),
    (Unavailable, 503),
)


def status_of(error: SignalboxError) -> int:
    return next((status for kind, status in _STATUSES if isinstance(error, kind)), 422)
