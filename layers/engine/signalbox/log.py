"""Structured logs: events are `noun.past_tense` with ids; payloads, params and secrets never reach them."""

from __future__ import annotations

import logging
import os

from aws_lambda_powertools.logging import Logger

__all__ = ["Logger", "make_logger"]


def make_logger(stack: str) -> Logger:
    """One per execution environment, writing one JSON object a line."""
    logger = Logger(service=stack, utc=True)
    # Powertools goes by Lambda's own level, whoever sets another; it is INFO where ours is above, for metrics' sake.
    if level := os.environ.get("POWERTOOLS_LOG_LEVEL"):
        logging.getLogger(logger.name).setLevel(level)
    return logger
