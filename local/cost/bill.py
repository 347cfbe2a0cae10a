"""A bill: items of a quantity at a price, and what they come to."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace

from local.cost.figures import Price, price_list

_BESIDES = ("CloudWatch", "X-Ray", "Aurora", "RDS Proxy", "VPC")


@dataclass(frozen=True, slots=True)
class Item:
    """A month's quantity of what has one price; `moved_by` says which setting changes it, if one does."""

    group: str
    what: str
    price: Price
    quantity: float
    moved_by: str = ""
    free: float = 0.0  # of the quantity

    @property
    def usd(self) -> float:
        return self.price.of(self.quantity - self.free)


@dataclass(frozen=True, slots=True)
class Bill:
    """What one way to run the jobs costs a month, with what else is to be known about it."""

    name: str
    items: tuple[Item, ...]
    notes: tuple[str, ...] = ()

    @property
    def usd(self) -> float:
        return sum(item.usd for item in self.items)

    def groups(self) -> dict[str, float]:
        """The sum of each, the largest first."""
        sums: dict[str, float] = {}
        for item in self.items:
            sums[item.group] = sums.get(item.group, 0.0) + item.usd
        return dict(sorted(sums.items(), key=lambda one: -one[1]))

    def alone(self) -> Bill:
        """Queue and workers: what containers have, without what they have none of here or share."""
        left = tuple(one for one in self.items if one.group not in _BESIDES)
        return replace(self, name="its queue and workers alone", items=left)

    def with_free_tier(self) -> Bill:
        """Less what is free each month, which the items of one price share; that of new accounts is left out."""
        left = {name: price.free for name, price in price_list().prices.items()}
        # Both architectures draw on one allowance.
        left["lambda.x86_64"] = 0.0
        return replace(self, items=tuple(_less_free(item, left) for item in self.items))


def item(group: str, what: str, price: str, quantity: float, moved_by: str = "") -> Item:
    return Item(group, what, price_list().prices[price], quantity, moved_by)


def present(items: Iterable[Item]) -> tuple[Item, ...]:
    """Those that are not nothing."""
    return tuple(one for one in items if one.quantity > 0)


def _less_free(one: Item, left: dict[str, float]) -> Item:
    name = "lambda.arm64" if one.price.name == "lambda.x86_64" else one.price.name
    free = min(one.quantity, left[name])
    left[name] -= free
    return replace(one, free=free)
