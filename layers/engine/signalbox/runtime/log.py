"""Structured logs: events are `noun.past_tense` with ids; payloads, params and secrets never reach them.

Powertools is imported when a function makes its logger: an application that only submits jobs does not need it.
"""

from __future__ import annotations

import logging
import os
from collections.abc import Mapping
from typing import Protocol

from signalbox.postgres.error_details import conceal


class Logger(Protocol):
    """What the engine needs of a logger: Powertools' in functions, Python's own in a client."""

    def debug(self, msg: object, /, *, extra: Mapping[str, object] | None = None) -> None: ...

    def info(self, msg: object, /, *, extra: Mapping[str, object] | None = None) -> None: ...

    def warning(self, msg: object, /, *, extra: Mapping[str, object] | None = None) -> None: ...

    def error(self, msg: object, /, *, extra: Mapping[str, object] | None = None) -> None: ...

    def exception(self, msg: object, /, *, extra: Mapping[str, object] | None = None) -> None: ...


def make_logger(stack: str, *, error_details: bool = False) -> Logger:
    """One per execution environment, writing one JSON object a line."""
    from aws_lambda_powertools import logging as powertools

    logger = powertools.Logger(service=stack, utc=True)
    if not error_details:
        logging.getLogger(logger.name).addFilter(_without_details)
    # Powertools goes by Lambda's own level, whoever sets another; it is INFO where ours is above, for metrics' sake.
    if level := os.environ.get("POWERTOOLS_LOG_LEVEL"):
        logging.getLogger(logger.name).setLevel(level)
    return logger


def _without_details(record: logging.LogRecord) -> bool:
    """A traceback shows what the error says: of a database's, nothing that it quotes of rows."""
    if record.exc_info and record.exc_info[1] is not None:
        conceal(record.exc_info[1])
    return True
