"""Structured logs: events are `noun.past_tense` with ids; payloads, params and secrets never reach them."""

from __future__ import annotations

from aws_lambda_powertools.logging import Logger

__all__ = ["Logger", "make_logger"]


def make_logger(stack: str) -> Logger:
    """One per execution environment, writing one JSON object a line."""
    return Logger(service=stack, utc=True)
