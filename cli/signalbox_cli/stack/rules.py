"""Fire rules of a stack on AWS by hand: EventBridge itself can't be asked to fire one.

It builds what EventBridge would send from each rule's targets, and invokes the functions asynchronously, as it would.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import asdict, dataclass
from datetime import datetime
from typing import TYPE_CHECKING, Any

from botocore.exceptions import BotoCoreError, ClientError

from signalbox.errors import ScheduleRefused
from signalbox_cli.explain import explain
from signalbox_cli.target.target import Target
from signalbox_cli.terminal import say
from signalbox_laptop.event_sources import rule as rules
from signalbox_laptop.event_sources.clock import Fired, choose
from signalbox_laptop.event_sources.rule import Rule, in_zulu
from signalbox_laptop.event_sources.target_input import InputInvalid, input_of

if TYPE_CHECKING:
    from mypy_boto3_events import EventBridgeClient

_RULE = "AWS::Events::Rule"


@dataclass(frozen=True, slots=True)
class StackRules:
    """Fire the rules of one stack."""

    target: Target

    def tick(self, at: datetime, names: list[str] | None, *, due: bool) -> list[dict[str, Any]]:
        """Fire the named rules, or all; with `due`, only those of them that are due."""
        # Only rules that the stack itself made, and when: rules of others may have names that begin like the stack's.
        made_at = {found["PhysicalResourceId"]: found["LastUpdatedTimestamp"] for found in self.target.resources(_RULE)}
        chosen = choose(list(_read(self.target.client("events"), sorted(made_at))), names)
        if due:
            chosen = [rule for rule in chosen if _is_due(rule, at, made_at[rule.name])]
        return [asdict(self._fire(rule, at)) for rule in chosen]

    def _fire(self, rule: Rule, at: datetime) -> Fired:
        _, _, _, region, account, _ = rule.arn.split(":", 5)
        event = rule.event(at, region, account)
        arrived = [self._send(rule, place, event) for place in rule.targets]
        return Fired(rule.name, in_zulu(at), len(arrived), arrived.count(False))

    def _send(self, rule: Rule, place: rules.RuleTarget, event: Mapping[str, Any]) -> bool:
        """Say whether it arrived. If not, print why; the other rules fire all the same."""
        try:
            if place.arn.split(":")[2] != "lambda":
                raise InputInvalid("by hand only functions are invoked")
            self.target.invoke(place.arn, json.loads(input_of(rule, place, event)), "Event")
        except InputInvalid as fault:
            say(f"signalbox: rule {rule.name} did not reach {place.arn}: {fault}")
            return False
        except (ClientError, BotoCoreError) as error:
            say(f"signalbox: rule {rule.name} did not reach {place.arn}: {explain(error)}")
            return False
        return True


def _read(events: EventBridgeClient, names: Iterable[str]) -> Iterator[Rule]:
    """Return those of the rules that have a schedule."""
    for name in names:
        answer = events.describe_rule(Name=name)
        if "ScheduleExpression" in answer:
            pages = events.get_paginator("list_targets_by_rule").paginate(Rule=name)
            yield Rule(
                name=name,
                arn=answer["Arn"],
                schedule=answer["ScheduleExpression"],
                enabled=answer["State"] != "DISABLED",
                targets=tuple(rules.RuleTarget.read(place) for page in pages for place in page["Targets"]),
            )


def _is_due(rule: Rule, minute: datetime, made_at: datetime) -> bool:
    try:
        return rule.is_due(minute, made_at)
    except ScheduleRefused as refusal:
        say(f"signalbox: can't decide whether rule {rule.name} is due: {refusal}; --rule fires it anyway")
        return False
