"""Log structured events: `noun.past_tense` with ids; payloads, params and secrets never reach them.

Powertools is imported when a function makes its logger: an application that only submits jobs does not need it.
"""

from __future__ import annotations

import logging
import os
from collections.abc import Mapping
from typing import Protocol

from signalbox.postgres.error_details import conceal


class Logger(Protocol):
    """Type the logger that the engine needs: Powertools' in functions, Python's own in a client."""

    def debug(self, msg: object, /, *, extra: Mapping[str, object] | None = None) -> None: ...

    def info(self, msg: object, /, *, extra: Mapping[str, object] | None = None) -> None: ...

    def warning(self, msg: object, /, *, extra: Mapping[str, object] | None = None) -> None: ...

    def error(self, msg: object, /, *, extra: Mapping[str, object] | None = None) -> None: ...

    def exception(self, msg: object, /, *, extra: Mapping[str, object] | None = None) -> None: ...


def make_logger(stack: str, *, error_details: bool = False) -> Logger:
    """Make the logger of an execution environment. It writes one JSON object a line."""
    from aws_lambda_powertools import logging as powertools

    logger = powertools.Logger(service=stack, utc=True)
    if not error_details:
        logging.getLogger(logger.name).addFilter(_without_details)
    # Powertools lets Lambda's own level win over any other. Lambda's is INFO even where ours is above, for metrics'
    # sake.
    if level := os.environ.get("POWERTOOLS_LOG_LEVEL"):
        logging.getLogger(logger.name).setLevel(level)
    return logger


def _without_details(record: logging.LogRecord) -> bool:
    """Remove from a traceback what a database error quotes of rows: a traceback shows the error's text."""
    if record.exc_info and record.exc_info[1] is not None:
        conceal(record.exc_info[1])
    return True
