"""Deliver an event to a target: a first attempt at once, retries after growing waits, then the dead-letter queue.

The target's retry policy says how often; the waits are short enough for a laptop, where EventBridge takes up to a day.
"""

from __future__ import annotations

import json
import logging
import threading
import time
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from signalbox_laptop.event_sources.destination import DeliveryFailed, DeliveryRefused, Destinations
from signalbox_laptop.event_sources.rule import Rule, RuleTarget
from signalbox_laptop.event_sources.target_input import InputInvalid, input_of

_log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Delivery:
    """Describe what is to arrive where."""

    rule: Rule
    target: RuleTarget
    event: Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Waits:
    """Compute the waits between attempts: doubling from the first, never longer than the longest."""

    first_seconds: float = 0.1
    longest_seconds: float = 2.0

    def before_retry(self, number: int) -> float:
        return min(self.first_seconds * 2.0 ** min(number - 1, 30), self.longest_seconds)


class Deliveries:
    """Own the retries in progress."""

    def __init__(self, destinations: Destinations, waits: Waits | None = None) -> None:
        self._destinations = destinations
        self._waits = waits or Waits()
        self._stopping = threading.Event()
        self._changed = threading.Condition()
        self._pending = 0

    @property
    def retrying(self) -> int:
        """Return how many deliveries failed at first and are still retried."""
        return self._pending

    def deliver(self, delivery: Delivery) -> bool:
        """Attempt it once and say whether it arrived; if not, retries continue in the background."""
        try:
            self._attempt(delivery)
        except DeliveryRefused as refusal:
            self._give_up(delivery, refusal, retries=None)
            return False
        except DeliveryFailed as failure:
            self._retry_later(delivery, failure)
            return False
        return True

    def stop(self) -> None:
        """Drop what is still being retried, as a machine that is switched off would."""
        self._stopping.set()
        self.wait_until_idle(5)

    def wait_until_idle(self, timeout_seconds: float) -> bool:
        """Wait until nothing is being retried; return False if it takes too long."""
        with self._changed:
            return self._changed.wait_for(lambda: self._pending == 0, timeout_seconds)

    def _attempt(self, delivery: Delivery) -> None:
        rule, target = delivery.rule, delivery.target
        try:
            payload = input_of(rule, target, delivery.event)
        except InputInvalid as error:
            raise DeliveryRefused("INVALID_JSON", str(error)) from None
        self._destinations.send(target.arn, payload, rule.arn, target.message_group_id)

    def _retry_later(self, delivery: Delivery, failure: DeliveryFailed) -> None:
        with self._changed:
            self._pending += 1
        threading.Thread(target=self._retry, args=(delivery, failure), name="rule-retry", daemon=True).start()

    def _retry(self, delivery: Delivery, failure: DeliveryFailed) -> None:
        try:
            self._retry_until_delivered(delivery, failure)
        finally:
            with self._changed:
                self._pending -= 1
                self._changed.notify_all()

    def _retry_until_delivered(self, delivery: Delivery, failure: DeliveryFailed) -> None:
        first_at = time.monotonic()
        for number in range(1, delivery.target.retries + 1):
            if time.monotonic() - first_at > delivery.target.maximum_age_seconds:
                return self._give_up(delivery, failure, retries=number - 1, spent="MaximumEventAgeInSeconds")
            if self._stopping.wait(self._waits.before_retry(number)):
                return None
            try:
                return self._attempt(delivery)
            except DeliveryRefused as refusal:
                return self._give_up(delivery, refusal, retries=number)
            except DeliveryFailed as again:
                failure = again
        return self._give_up(delivery, failure, retries=delivery.target.retries, spent="MaximumRetryAttempts")

    def _give_up(
        self, delivery: Delivery, failure: DeliveryFailed, retries: int | None, spent: str | None = None
    ) -> None:
        rule, target = delivery.rule, delivery.target
        _log.warning("delivery.failed rule=%s target=%s code=%s %s", rule.name, target.arn, failure.code, failure)
        if target.dead_letter_arn is None:
            return
        attributes = {
            "RULE_ARN": rule.arn,
            "TARGET_ARN": target.arn,
            "ERROR_CODE": failure.code,
            "ERROR_MESSAGE": str(failure),
            **({"RETRY_ATTEMPTS": str(retries)} if retries is not None else {}),
            **({"EXHAUSTED_RETRY_CONDITION": spent} if spent else {}),
        }
        try:
            body = json.dumps(delivery.event)
            self._destinations.send_message(target.dead_letter_arn, body, rule.arn, attributes=attributes)
        except Exception as error:
            _log.error("delivery.lost rule=%s dead_letter_queue=%s %s", rule.name, target.dead_letter_arn, error)
