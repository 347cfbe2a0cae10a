"""Derive one organisation's status and plan from Stripe's subscriptions. Pure.

A customer may have several subscriptions, and a subscription several prices. A running subscription counts before an
ended one, and a newer before an older. It gives a plan only if its known prices stand for exactly one.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

# A subscription in one of these states owes nothing.
PAID = frozenset({"active", "trialing"})
# A customer with one of these is in good standing, or still in time to pay: the plan is theirs.
GRANTING = PAID | {"past_due"}
ENDED = frozenset({"canceled", "incomplete_expired"})
_RANKS: Mapping[str, int] = {
    **dict.fromkeys(GRANTING, 3),
    **dict.fromkeys(("unpaid", "paused"), 2),
    "incomplete": 1,
    **dict.fromkeys(ENDED, 0),
}
# An unknown status, which Stripe may add one day, counts as not ended.
_UNKNOWN_RANK = 1


@dataclass(frozen=True, slots=True)
class Price:
    """Describe what one item of a subscription is charged by."""

    id: str
    lookup_key: str | None = None


@dataclass(frozen=True, slots=True)
class Subscription:
    """Describe a customer's subscription, as far as it matters here."""

    id: str
    status: str
    created: int  # seconds since 1970, as Stripe gives it
    prices: tuple[Price, ...] = ()


@dataclass(frozen=True, slots=True)
class Standing:
    """Describe what the organisation should have."""

    status: str | None  # None: there is no subscription at all
    plan: str | None  # None: Stripe does not say, so ours stays
    doubt: str | None = None  # why a plan could not be determined, if one should be


def standing_of(subscriptions: Sequence[Subscription], plans: Mapping[str, str], unsubscribed: str | None) -> Standing:
    """Judge by the subscription that counts; `unsubscribed` is the plan of those without one, if there is such."""
    counts = counting(subscriptions)
    if counts is None or counts.status in ENDED:
        return Standing(counts.status if counts else None, unsubscribed)
    if counts.status not in GRANTING:
        return Standing(counts.status, None)
    known = sorted({plan for price in counts.prices if (plan := plan_of(price, plans)) is not None})
    if len(known) == 1:
        return Standing(counts.status, known[0])
    return Standing(counts.status, None, _doubt(counts, known))


def counting(subscriptions: Sequence[Subscription]) -> Subscription | None:
    """Return the subscription that counts; the id decides between twins, so that the answer is the same each time."""
    return max(subscriptions, key=_weight, default=None)


def _weight(subscription: Subscription) -> tuple[int, int, str]:
    return _RANKS.get(subscription.status, _UNKNOWN_RANK), subscription.created, subscription.id


def plan_of(price: Price, plans: Mapping[str, str]) -> str | None:
    """Look up the price's id, which never changes, before its lookup key, which may move to another price."""
    return plans.get(price.id) or plans.get(price.lookup_key or "")


def _doubt(subscription: Subscription, known: Sequence[str]) -> str:
    prices = ", ".join(price.id for price in subscription.prices) or "none"
    if known:
        return f"the prices of {subscription.id} ({prices}) stand for several plans: {', '.join(known)}"
    return f"no price of {subscription.id} ({prices}) stands for a plan: name it in FORECASTS_STRIPE_PRICES"
