"""Define the pack's own branches of the engine's tree of errors."""

from __future__ import annotations

from signalbox.errors import Refused, Unavailable


class StripeRefused(Refused):
    """Stripe does not accept our key: no call will succeed before it is replaced."""


class StripeUnavailable(Unavailable):
    """Stripe can't be reached, fails, or limits our rate for longer than we wait."""


class OrganizationRefused(Refused):
    """Stripe, or the database, refuses something about one organisation; the others are not concerned."""


class RunPodRefused(Refused):
    """RunPod refuses this request; others are not concerned."""


class RunPodDenied(Refused):
    """RunPod knows neither our key nor our endpoint: no call will succeed before that is fixed."""


class RunPodUnavailable(Unavailable):
    """RunPod can't be reached, fails, or limits our rate for longer than we wait. It has taken nothing."""


class TriggerUnconfirmed(Unavailable):
    """RunPod may have taken the run without saying so. It takes no idempotency key: never send it again."""


class MirrorFailed(Unavailable):
    """One mirror of upstream data does not answer as it should; the next one may."""


class MirrorsFailed(Unavailable):
    """No mirror of a source answers."""


class PollFailed(Unavailable):
    """Parts of a poll failed, each for a reason that the message gives; what worked stays done."""


class PreferencesRefused(Refused):
    """An organisation's time zone or wishes can't be read; the others are not concerned."""
