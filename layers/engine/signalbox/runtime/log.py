"""Structured logs: events are `noun.past_tense` with ids; payloads, params and secrets never reach them."""

from __future__ import annotations

import logging
import os

from aws_lambda_powertools.logging import Logger

from signalbox.postgres.error_details import conceal

__all__ = ["Logger", "make_logger"]


def make_logger(stack: str, *, error_details: bool = False) -> Logger:
    """One per execution environment, writing one JSON object a line."""
    logger = Logger(service=stack, utc=True)
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
