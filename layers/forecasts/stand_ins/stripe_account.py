"""Keep the data of the stand-in for Stripe, in the shapes that Stripe uses."""

from __future__ import annotations

import threading
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from itertools import count
from typing import Any

Item = dict[str, Any]
# Listed only if `status` asks for them.
_ENDED = ("canceled", "incomplete_expired")
_MONTH_SECONDS = 30 * 24 * 3600
_PRICE = {"object": "price", "active": True, "currency": "usd", "lookup_key": None, "type": "recurring"}


@dataclass(slots=True)
class Account:
    """Keep customers and subscriptions, in the order in which they were made."""

    customers: dict[str, Item] = field(default_factory=dict)
    subscriptions: dict[str, Item] = field(default_factory=dict)
    searchable: bool = True  # off: as in the minute before Stripe's search finds what is new
    _numbers: Any = field(default_factory=lambda: count(1))
    _lock: Any = field(default_factory=threading.Lock)

    def add_customer(self, organization_id: str | None = None, **fields: Any) -> str:
        """Add a customer and return its id; made now, unless `created` says otherwise."""
        metadata = {"organization_id": organization_id} if organization_id else {}
        with self._lock:
            customer = {"id": f"cus_local{next(self._numbers):06}", **_customer(), "metadata": metadata, **fields}
            self.customers[customer["id"]] = customer
        return str(customer["id"])

    def add_subscription(self, customer: str, status: str, *prices: str | Mapping[str, Any], **fields: Any) -> str:
        """Add a subscription with an item for each price: an id, or the fields of a price."""
        with self._lock:
            id_ = f"sub_local{next(self._numbers):06}"
            made = {"id": id_, **_subscription(customer, status), **fields}
            items = [_item(id_, price, made["created"]) for price in prices]
            self.subscriptions[id_] = {**made, "items": _list(f"/v1/subscription_items?subscription={id_}", items)}
        return id_

    def subscriptions_of(self, customer: str, status: str | None) -> list[Item]:
        """Return subscriptions, newest first, as Stripe lists them."""
        with self._lock:
            found = [one for one in self.subscriptions.values() if one["customer"] == customer]
        kept = [one for one in found if _listed(one["status"], status)]
        return sorted(kept, key=lambda one: (one["created"], one["id"]), reverse=True)

    def customers_of(self, organization_id: str) -> list[Item]:
        """Return customers as the search finds them."""
        with self._lock:
            found = list(self.customers.values()) if self.searchable else []
        return [one for one in found if one["metadata"].get("organization_id") == organization_id]


def page(url: str, found: list[Item], params: Mapping[str, str]) -> Item:
    """Return one page of a list, after the object that `starting_after` names."""
    limit, after = int(params.get("limit", 10)), params.get("starting_after")
    start = next((at + 1 for at, one in enumerate(found) if one["id"] == after), 0)
    return {**_list(url, found[start : start + limit]), "has_more": len(found) > start + limit}


def _listed(status: str, asked: str | None) -> bool:
    if asked == "all":
        return True
    if asked == "ended":
        return status in _ENDED
    return status == asked if asked else status not in _ENDED


def _list(url: str, items: list[Item]) -> Item:
    return {"object": "list", "url": url, "has_more": False, "data": items}


def _customer() -> Item:
    return {
        "object": "customer",
        "created": _now(),
        "currency": None,
        "description": None,
        "email": None,
        "livemode": False,
        "name": None,
    }


def _subscription(customer: str, status: str) -> Item:
    return {
        "object": "subscription",
        "cancel_at_period_end": False,
        "canceled_at": _now() if status == "canceled" else None,
        "collection_method": "charge_automatically",
        "created": _now(),
        "currency": "usd",
        "customer": customer,
        "livemode": False,
        "metadata": {},
        "status": status,
    }


def _item(subscription: str, price: str | Mapping[str, Any], created: int) -> Item:
    given = {"id": price} if isinstance(price, str) else dict(price)
    return {
        "id": f"si_{subscription.removeprefix('sub_')}_{given['id'].removeprefix('price_')}",
        "object": "subscription_item",
        "current_period_start": created,
        "current_period_end": created + _MONTH_SECONDS,
        "price": {**_PRICE, **given},
        "quantity": 1,
        "subscription": subscription,
    }


def _now() -> int:
    return int(datetime.now(UTC).timestamp())
