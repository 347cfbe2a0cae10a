"""Take params, and tell more than the items."""

from __future__ import annotations

from signalbox.ledger.context import Context, Done
from signalbox.packs.payload import Payload


class Params(Payload):
    name: str
    times: int = 1


def greet(context: Context) -> Done:
    return Done(items=context.params.times, detail={"greeted": context.params.name})
