"""Describe a scheduled rule as deployed, read from EventBridge's own answers, and decide when it is due."""

from __future__ import annotations

import re
import uuid
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

from signalbox.packs.schedule import Schedule

if TYPE_CHECKING:
    from mypy_boto3_events import EventBridgeClient
    from mypy_boto3_events.type_defs import RuleTypeDef, TargetOutputTypeDef

_MINUTES = {"minute": 1, "hour": 60, "day": 1440}
_RATE = re.compile(r"rate\((\d+) (minute|hour|day)s?\)")
# EventBridge's defaults, if a target sets none.
_RETRIES, _MAXIMUM_AGE = 185, 86_400


@dataclass(frozen=True, slots=True)
class RuleTarget:
    """Say where an event goes, how its input is made, and what happens if it can't arrive."""

    id: str
    arn: str
    input: str | None = None
    input_path: str | None = None
    input_paths_map: Mapping[str, str] | None = None
    input_template: str | None = None
    message_group_id: str | None = None
    retries: int = _RETRIES
    maximum_age_seconds: int = _MAXIMUM_AGE
    dead_letter_arn: str | None = None

    @staticmethod
    def read(answer: TargetOutputTypeDef) -> RuleTarget:
        transformer = answer.get("InputTransformer")
        policy = answer.get("RetryPolicy", {})
        return RuleTarget(
            id=answer["Id"],
            arn=answer["Arn"],
            input=answer.get("Input"),
            input_path=answer.get("InputPath"),
            input_paths_map=transformer.get("InputPathsMap", {}) if transformer else None,
            input_template=transformer["InputTemplate"] if transformer else None,
            message_group_id=answer.get("SqsParameters", {}).get("MessageGroupId"),
            retries=policy.get("MaximumRetryAttempts", _RETRIES),
            maximum_age_seconds=policy.get("MaximumEventAgeInSeconds", _MAXIMUM_AGE),
            dead_letter_arn=answer.get("DeadLetterConfig", {}).get("Arn"),
        )


@dataclass(frozen=True, slots=True)
class Rule:
    """Describe a rule with a schedule."""

    name: str
    arn: str
    schedule: str
    enabled: bool
    targets: Sequence[RuleTarget]

    def is_due(self, minute: datetime, since: datetime) -> bool:
        """Say whether it fires at this minute. A rate counts from when the rule was made, a cron expression by the
        clock."""
        if rate := _RATE.fullmatch(self.schedule):
            age = int((minute - whole_minute(since)).total_seconds()) // 60
            return age != 0 and age % (int(rate[1]) * _MINUTES[rate[2]]) == 0
        return Schedule.parse(self.schedule).slot_of(minute) == minute

    def event(self, at: datetime, region: str, account: str) -> dict[str, Any]:
        """Return the event that EventBridge makes of a fire."""
        return {
            "version": "0",
            "id": str(uuid.uuid4()),
            "detail-type": "Scheduled Event",
            "source": "aws.events",
            "account": account,
            "time": in_zulu(at),
            "region": region,
            "resources": [self.arn],
            "detail": {},
        }


def read_rules(events: EventBridgeClient) -> list[Rule]:
    """Return every rule that has a schedule, ordered by name."""
    found = [rule for page in events.get_paginator("list_rules").paginate() for rule in page["Rules"]]
    scheduled = [rule for rule in found if rule.get("ScheduleExpression")]
    return [_read_rule(events, rule) for rule in sorted(scheduled, key=lambda rule: rule["Name"])]


def _read_rule(events: EventBridgeClient, answer: RuleTypeDef) -> Rule:
    pages = events.get_paginator("list_targets_by_rule").paginate(Rule=answer["Name"])
    return Rule(
        name=answer["Name"],
        arn=answer["Arn"],
        schedule=answer["ScheduleExpression"],
        enabled=answer.get("State", "ENABLED") != "DISABLED",
        targets=tuple(RuleTarget.read(target) for page in pages for target in page["Targets"]),
    )


def whole_minute(instant: datetime) -> datetime:
    return instant.astimezone(UTC).replace(second=0, microsecond=0)


def in_zulu(instant: datetime) -> str:
    return instant.astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
