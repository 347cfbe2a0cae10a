"""Fire rules: for an instant on request, or by the clock at each whole minute.

A machine that slept fires one minute, the current one. The minutes in between stay missed; the reconciler handles them.
"""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable, Collection
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import TYPE_CHECKING

from signalbox.errors import ScheduleRefused
from signalbox_laptop.aws import ACCOUNT, REGION, client
from signalbox_laptop.errors import LaptopError
from signalbox_laptop.event_sources.delivery import Deliveries, Delivery
from signalbox_laptop.event_sources.rule import Rule, in_zulu, read_rules, whole_minute

if TYPE_CHECKING:
    from mypy_boto3_events import EventBridgeClient

_log = logging.getLogger(__name__)
# Short, since a longer wait would not notice that the machine slept past its end.
_LONGEST_WAIT_SECONDS = 1.0


@dataclass(frozen=True, slots=True)
class Fired:
    """Describe one rule that fired: `failed` of its `targets` were not reached at the first attempt."""

    rule: str
    time: str
    targets: int
    failed: int


class Firing:
    """Own the clock's thread."""

    def __init__(
        self, endpoint: str, deliveries: Deliveries, now: Callable[[], datetime] = lambda: datetime.now(UTC)
    ) -> None:
        self._events: EventBridgeClient = client("events", endpoint)
        self._deliveries = deliveries
        self._now = now
        self._made_at = now()
        self._stopping = threading.Event()
        self._thread = threading.Thread(target=self._tick_tock, name="rule-clock", daemon=True)

    def fire(self, at: datetime, rules: Collection[str] | None = None, *, due: bool = False) -> list[Fired]:
        """Fire the named rules, or all; with `due`, only those of them that are due at that minute. A disabled rule
        does not fire; naming it is an error."""
        known = read_rules(self._events)
        chosen = choose(known, rules)
        if due:
            chosen = [rule for rule in chosen if self._is_due(rule, whole_minute(at))]
        return [self._fire(rule, at) for rule in chosen]

    @property
    def clock_runs(self) -> bool:
        return self._thread.is_alive()

    def start_clock(self) -> None:
        self._thread.start()

    def stop(self) -> None:
        self._stopping.set()
        if self._thread.is_alive():
            self._thread.join()

    def _is_due(self, rule: Rule, minute: datetime) -> bool:
        try:
            return rule.is_due(minute, self._made_at)
        except ScheduleRefused as refusal:  # AWS would have refused such a rule; moto does not
            _log.warning("rule.unreadable rule=%s %s", rule.name, refusal)
            return False

    def _fire(self, rule: Rule, at: datetime) -> Fired:
        event = rule.event(at, REGION, ACCOUNT)
        arrived = [self._deliveries.deliver(Delivery(rule, target, event)) for target in rule.targets]
        return Fired(rule.name, in_zulu(at), len(arrived), arrived.count(False))

    def _tick_tock(self) -> None:
        last = whole_minute(self._now())
        while not self._stopping.wait(wait_seconds(self._now())):
            minute = whole_minute(self._now())
            if minute != last:
                last = minute
                self._fire_due(minute)

    def _fire_due(self, minute: datetime) -> None:
        try:
            self.fire(minute, due=True)
        except Exception:  # the clock survives any error of one minute
            _log.exception("clock.failed minute=%s", in_zulu(minute))


def wait_seconds(now: datetime) -> float:
    """Return how long to wait before the next look at the clock: until the whole minute, or less if that is far."""
    return min(60.0 - now.second - now.microsecond / 1e6, _LONGEST_WAIT_SECONDS)


def choose(known: list[Rule], names: Collection[str] | None) -> list[Rule]:
    """Return the named rules, or all that are enabled; refuse a name that can't be fired."""
    enabled = {rule.name: rule for rule in known if rule.enabled}
    if names is None:
        return list(enabled.values())
    if unknown := sorted(set(names) - {rule.name for rule in known}):
        raise LaptopError(
            f"no rule is named {', '.join(unknown)}; this stack has {', '.join(rule.name for rule in known)}"
        )
    if disabled := sorted(set(names) - set(enabled)):
        raise LaptopError(f"rule {', '.join(disabled)} is disabled, and does not fire")
    return [rule for name, rule in enabled.items() if name in names]
