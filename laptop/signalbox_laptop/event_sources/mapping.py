"""Describe an SQS event source mapping as deployed: one frozen value, read from ListEventSourceMappings."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from mypy_boto3_lambda.type_defs import EventSourceMappingConfigurationTypeDef


@dataclass(frozen=True, slots=True, kw_only=True)
class Mapping:
    """Say which queue feeds which function, and how."""

    uuid: str
    queue_arn: str
    function_arn: str
    enabled: bool
    batch_size: int
    # Seconds to gather a batch; with 0, each receive is a batch.
    window: int
    # The function may name the messages that failed (ReportBatchItemFailures).
    partial: bool
    maximum_concurrency: int | None

    @property
    def queue_name(self) -> str:
        return self.queue_arn.rpartition(":")[2]

    @property
    def region(self) -> str:
        return self.queue_arn.split(":")[3]

    def concurrency(self, default: int) -> int:
        """Return how many batches may run at once; a FIFO queue is read in order, so one."""
        return 1 if self.queue_name.endswith(".fifo") else self.maximum_concurrency or default

    @staticmethod
    def read(answer: EventSourceMappingConfigurationTypeDef) -> Mapping | None:
        """Read a mapping; return None for a source that is not a queue: the laptop polls queues only."""
        source = answer.get("EventSourceArn", "")
        if ":sqs:" not in source:
            return None
        maximum = answer.get("ScalingConfig", {}).get("MaximumConcurrency")
        return Mapping(
            uuid=answer["UUID"],
            queue_arn=source,
            function_arn=answer["FunctionArn"],
            enabled=answer["State"] == "Enabled",
            batch_size=int(answer.get("BatchSize", 10)),
            window=int(answer.get("MaximumBatchingWindowInSeconds", 0)),
            partial="ReportBatchItemFailures" in answer.get("FunctionResponseTypes", []),
            maximum_concurrency=int(maximum) if maximum else None,
        )
