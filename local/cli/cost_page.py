"""A bill as text: its items, their sums, what moves the largest of them, and containers beside it. Pure."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from rich.text import Text

from local.cli.table import Column, Row, table
from local.cost.bill import Bill, Item
from local.cost.estimate import Estimate
from local.cost.figures import Price, price_list

_COLUMNS = (Column("service"), Column("item"), Column("quantity", right=True), Column("unit"),
            Column("price", right=True), Column("a month", right=True))  # fmt: skip
_BESIDE = (Column("one way and another"), Column("a month", right=True), Column("per 1,000 jobs", right=True))
_LARGEST = 3
_CENT = 0.01


def cost_lines(found: Estimate, width: int) -> list[Text]:
    """All of it."""
    rows = list(_rows(found.bill))
    lines = [Text(_heading(found)), Text(), *table(_COLUMNS, rows, width)]
    lines += [Text(), *map(Text, _sums(found)), Text(), *map(Text, _movers(found.bill))]
    beside = (found.bill, found.bill.alone(), *found.beside)
    lines += [Text(), *table(_BESIDE, [_beside(found, one) for one in beside], width), Text()]
    return lines + [Text(line, style="dim") for line in _small_print(found)]


def cost_json(found: Estimate) -> dict[str, Any]:
    """The same for programs."""
    return {
        "prices": {"as_of": price_list().as_of, "region": price_list().region, "free_tier": found.free_tier},
        "load": found.load_fields(),
        "total": round(found.bill.usd, 4),
        "standing": round(found.standing.usd, 4),
        "per_1000_jobs": per_thousand(found, found.bill),
        "items": [_item(one) for one in found.bill.items],
        "notes": list(found.bill.notes),
        "beside": [{"name": one.name, "total": round(one.usd, 4)} for one in found.beside],
    }


def per_thousand(found: Estimate, bill: Bill) -> float | None:
    jobs = found.work.jobs_a_month
    return round(bill.usd / jobs * 1000, 6) if jobs else None


def dollars(usd: float) -> str:
    return f"${usd:,.2f}"


def _heading(found: Estimate) -> str:
    work = found.work
    return (
        f"{work.load.jobs_a_day:,.0f} jobs a day on the lane {work.load.lane}, {work.job_ms:,.1f} ms each, "
        f"{work.batch:,.1f} a batch: {work.workers:,.2f} workers busy, a batch takes {work.batch_ms:,.0f} ms"
    )


def _rows(bill: Bill) -> Iterator[Row]:
    """By service, the largest first; what is less than a cent stands in one row."""
    small = [one for one in bill.items if one.usd < _CENT]
    for group in bill.groups():
        here = [one for one in bill.items if one.group == group and one.usd >= _CENT]
        yield from (_row(one) for one in sorted(here, key=lambda one: -one.usd))
    if small:
        yield Row(["others", f"{len(small)} items of less than a cent", "", "", "", dollars(sum(o.usd for o in small))])


def _row(one: Item) -> Row:
    free = f"{quantity(one.free)} free" if one.free else ""
    return Row([one.group, one.what, quantity(one.quantity), one.price.unit, price(one.price), dollars(one.usd)], free)


def _sums(found: Estimate) -> Iterator[str]:
    yield f"{dollars(found.bill.usd)} a month, of which {dollars(found.standing.usd)} without any job"
    each = per_thousand(found, found.bill)
    if each is not None:
        yield f"{rate(each)} per 1,000 jobs"


def _movers(bill: Bill) -> Iterator[str]:
    largest = sorted((one for one in bill.items if one.moved_by), key=lambda one: -one.usd)[:_LARGEST]
    yield "what moves the largest items:"
    for one in largest:
        yield f"  {dollars(one.usd)}  {one.group}, {one.what}: {one.moved_by}"


def _beside(found: Estimate, bill: Bill) -> Row:
    each = per_thousand(found, bill)
    return Row([bill.name, dollars(bill.usd), "" if each is None else rate(each)])


def _small_print(found: Estimate) -> Iterator[str]:
    prices = price_list()
    free = "less what is free each month" if found.free_tier else "nothing taken off for the free tier"
    yield f"list prices of {prices.region}, {prices.as_of}; {free}; docs/cost.md has what is assumed"
    yield from found.bill.notes


def _item(one: Item) -> dict[str, Any]:
    return {
        "group": one.group,
        "item": one.what,
        "quantity": round(one.quantity, 6),
        "free": round(one.free, 6),
        "unit": one.price.unit,
        "price": one.price.usd,
        "per": one.price.per,
        "usd": round(one.usd, 6),
        "moved_by": one.moved_by or None,
    }


def quantity(number: float) -> str:
    """With as many digits as say something."""
    if number >= 100 or number == int(number):
        return f"{number:,.0f}"
    return f"{number:,.2f}" if number >= 0.1 else f"{number:.2g}"


def price(one: Price) -> str:
    """As price lists write it."""
    each = f"${one.usd:.10f}".rstrip("0") if one.usd < 0.01 else f"${one.usd:,.4f}".rstrip("0")
    whole = each + "0" * max(0, 2 - len(each.partition(".")[2]))
    return whole if one.per == 1 else f"{whole} per {_SIZES[one.per]}"


_SIZES: Mapping[float, str] = {10_000: "10,000", 1_000_000: "million"}


def rate(usd: float) -> str:
    if usd >= 1:
        return dollars(usd)
    return f"${usd:.4f}" if usd >= 0.001 else f"${usd:.7f}".rstrip("0")
