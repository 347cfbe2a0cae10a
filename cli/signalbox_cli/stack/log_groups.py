"""Read the functions' log groups in CloudWatch Logs in order of time, once or as they grow."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING

from signalbox_cli.errors import UsageRefused
from signalbox_cli.target.target import Target
from signalbox_cli.views.log_line import LogRecord

if TYPE_CHECKING:
    from mypy_boto3_lambda import LambdaClient
    from mypy_boto3_logs import CloudWatchLogsClient

# CloudWatch shows records with a delay, so records up to this old are looked for again.
_LATE = timedelta(seconds=15)


@dataclass(frozen=True, slots=True)
class LogGroup:
    """Name the group that one function logs to."""

    function: str  # its short name
    name: str


@dataclass(slots=True)
class LogReader:
    """Read log records, each only once."""

    client: CloudWatchLogsClient
    groups: Sequence[LogGroup]
    _seen: dict[tuple[str, str], datetime] = field(default_factory=dict)

    def read(self, since: datetime) -> list[LogRecord]:
        """Return the records since then that have not been returned yet."""
        records = sorted((record for group in self.groups for record in self._new(group, since)), key=_instant_of)
        self._forget(since)
        return records

    def _new(self, group: LogGroup, since: datetime) -> Iterator[LogRecord]:
        for event_id, record in self._events(group, since):
            key = (group.name, event_id)
            if key not in self._seen:
                self._seen[key] = _instant_of(record)
                yield record

    def _events(self, group: LogGroup, since: datetime) -> Iterator[tuple[str, LogRecord]]:
        start = int(since.timestamp() * 1000)
        pages = self.client.get_paginator("filter_log_events").paginate(logGroupName=group.name, startTime=start)
        try:
            for page in pages:
                for event in page["events"]:
                    at = datetime.fromtimestamp(event["timestamp"] / 1000, UTC)
                    yield event["eventId"], LogRecord.read(event["message"].rstrip("\n"), group.function, at)
        except self.client.exceptions.ResourceNotFoundException:
            return  # it has logged nothing yet

    def _forget(self, since: datetime) -> None:
        """Forget records before this time: they will not be asked for again."""
        self._seen = {key: at for key, at in self._seen.items() if at >= since}


def follow_from(records: Iterable[LogRecord], since: datetime) -> datetime:
    """Return where the next look begins, once these have been read."""
    newest = max((_instant_of(record) for record in records), default=since)
    return max(since, newest - _LATE)


def find_groups(target: Target, function: str | None) -> list[LogGroup]:
    """Return the groups of the stack's functions, or of one; raise if there is no such function."""
    names = [target.function_name(function)] if function else target.functions()
    lambda_: LambdaClient = target.client("lambda")
    return [_group_of(lambda_, target, name) for name in names]


def _group_of(lambda_: LambdaClient, target: Target, name: str) -> LogGroup:
    try:
        logging = lambda_.get_function_configuration(FunctionName=name).get("LoggingConfig", {})
    except lambda_.exceptions.ResourceNotFoundException:
        raise UsageRefused(f"function {name} does not exist; the stack has {', '.join(target.functions())}") from None
    return LogGroup(name.removeprefix(f"{target.stack}-"), logging.get("LogGroup", f"/aws/lambda/{name}"))


def _instant_of(record: LogRecord) -> datetime:
    return record.at or datetime.min.replace(tzinfo=UTC)
