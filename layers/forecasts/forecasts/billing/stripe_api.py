"""Call Stripe over HTTP: read a customer's subscriptions, and find or create customers for organisations.

Each failure becomes one of the pack's own errors: the key is refused, Stripe can't be reached, or Stripe refuses this
one organisation. Calls are bounded in time, and repeated while that helps.
"""

from __future__ import annotations

import random
import time
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, TypeVar

from forecasts.billing.standing import Price, Subscription
from forecasts.errors import OrganizationRefused, StripeRefused, StripeUnavailable

if TYPE_CHECKING:
    from stripe import StripeClient

CONNECT_SECONDS = 3.0
# For a read that times out, and a connection that breaks; a call is made three times at most.
RETRIES = 2
# Stripe's client does not repeat calls that exceeded its rate limit.
RATE_LIMITED_TRIES = 4
_LONGEST_WAIT = 10.0

Result = TypeVar("Result")


class Stripe:
    """Call one account, by its key. The key is in no message and no log."""

    def __init__(self, client: StripeClient, timeout_seconds: float) -> None:
        self._client = client
        # With its retries, and the pauses between them.
        self.longest_call = (RETRIES + 1) * (CONNECT_SECONDS + timeout_seconds) + 2

    @staticmethod
    def at(base_url: str, key: str, timeout_seconds: float) -> Stripe:
        import stripe

        # Telemetry would write a file into the home folder, which Lambda does not have, and time our calls for Stripe.
        stripe.enable_telemetry = False
        transport = stripe.RequestsClient(timeout=(CONNECT_SECONDS, timeout_seconds))
        client = stripe.StripeClient(
            key,
            base_addresses={"api": base_url.rstrip("/")},
            max_network_retries=RETRIES,
            http_client=transport,
        )
        return Stripe(client, timeout_seconds)

    def subscriptions_of(self, customer: str) -> list[Subscription]:
        """Return all subscriptions: without a status, Stripe would hide those that have ended."""
        params: Any = {"customer": customer, "status": "all", "limit": 100}
        found = _ask(lambda: list(self._client.v1.subscriptions.list(params).auto_paging_iter()))
        return [_subscription(one.to_dict()) for one in found]

    def find_customer(self, organization_id: str) -> str | None:
        """Return the customer made for the organisation; the oldest if there are several."""
        params: Any = {"query": f"metadata['organization_id']:'{organization_id}'", "limit": 100}
        found = _ask(lambda: self._client.v1.customers.search(params).data)
        oldest = min(found, key=lambda customer: (customer.created, customer.id), default=None)
        return None if oldest is None else str(oldest.id)

    def create_customer(self, organization_id: str, name: str) -> str:
        """Create a customer; within a day, a repeated call returns the same one. Later, `find_customer` finds it."""
        params: Any = {"name": name, "metadata": {"organization_id": organization_id}}
        options: Any = {"idempotency_key": f"signalbox-customer-{organization_id}"}
        return str(_ask(lambda: self._client.v1.customers.create(params, options)).id)


def _subscription(given: dict[str, Any]) -> Subscription:
    try:
        prices = tuple(Price(item["price"]["id"], item["price"].get("lookup_key")) for item in given["items"]["data"])
        return Subscription(given["id"], given["status"], int(given["created"]), prices)
    except (KeyError, TypeError, ValueError, AttributeError) as error:
        raise OrganizationRefused(f"subscription {given.get('id')} is not in the shape we know: {error!r}") from None


def _ask(call: Callable[[], Result]) -> Result:
    """Return the answer, and wait before another try if Stripe asks for it."""
    import stripe

    for tries_left in reversed(range(RATE_LIMITED_TRIES)):
        try:
            return call()
        except stripe.RateLimitError as error:
            if not tries_left:
                raise StripeUnavailable(f"Stripe still limits our rate after {RATE_LIMITED_TRIES} tries") from None
            time.sleep(_wait(error.headers, RATE_LIMITED_TRIES - tries_left))
        except stripe.StripeError as error:
            raise _translated(error) from None
    raise AssertionError("the last try raises")


def _wait(headers: Any, tries: int) -> float:
    """Return the seconds that Stripe asks for, else about half a second, doubled each time."""
    given = str((headers or {}).get("Retry-After", ""))
    wait = float(given) if given.isdecimal() else random.uniform(0.5, 1) * 2 ** (tries - 1) / 2  # noqa: S311, no secret
    return min(wait, _LONGEST_WAIT)


def _translated(error: Any) -> Exception:
    """Translate by type and code. Keep Stripe's words only if they concern the organisation."""
    import stripe

    if isinstance(error, stripe.AuthenticationError | stripe.PermissionError):
        return StripeRefused("Stripe does not take the key that FORECASTS_STRIPE_SECRET names: put a valid one there")
    if isinstance(error, stripe.InvalidRequestError | stripe.IdempotencyError):
        return OrganizationRefused(f"Stripe refuses ({error.code or type(error).__name__}): {error.user_message}")
    status = f"status {error.http_status}" if error.http_status else "no answer"
    return StripeUnavailable(f"Stripe fails with {type(error).__name__}, {status}")
