"""Send submitted jobs to their lanes on a best effort: `dispatch_jobs` sends the rest."""

from __future__ import annotations

import logging
from collections.abc import Sequence
from functools import cached_property
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any

from signalbox.aws.clients import Clients
from signalbox.aws.errors import is_aws_error
from signalbox.errors import SignalboxError
from signalbox.publish.lanes import Lanes
from signalbox.publish.publisher import messages_of
from signalbox.submit.new_job import Submitted

if TYPE_CHECKING:
    from mypy_boto3_sqs import SQSClient

# A web request waits for this, so an SQS that does not answer must not hold it up: dispatch_jobs sends the job.
CONNECT_SECONDS, READ_SECONDS = 1, 3
LOG = logging.getLogger(__name__)


class Sender:
    """Own a connection to SQS, made when the first job is sent. Without a stack or boto3, send nothing."""

    def __init__(self, stack: str | None) -> None:
        self._stack, self._clients = stack, PromptClients()

    def send(self, submitted: Sequence[Submitted]) -> int:
        """Send the jobs, and return how many SQS took."""
        messages = messages_of(submitted)
        if not messages or self._stack is None or find_spec("boto3") is None:
            return 0
        try:
            return Lanes(self._clients, self._stack).send(messages)
        except Exception as error:
            if not (isinstance(error, SignalboxError) or is_aws_error(error)):
                raise
            LOG.warning("messages.not_sent", extra={"number": len(messages), "error": str(error)})
            return 0


class PromptClients(Clients):
    """Make clients that give up soon."""

    @cached_property
    def sqs(self) -> SQSClient:
        from boto3.session import Session
        from botocore.config import Config

        patience: Any = {"connect_timeout": CONNECT_SECONDS, "read_timeout": READ_SECONDS}
        config = Config(**patience, retries={"total_max_attempts": 1})
        return Session().client("sqs", config=config)  # boto3's default session is not for several threads
