"""Keep moto from acting on event source mappings: in its process, they are mere records.

Moto would invoke the function itself, through Docker, while the sender waits in SendMessage, and handle the whole queue
at once; the laptop's own pollers do it as AWS does. Call this before moto serves its first request.
"""

from __future__ import annotations

from typing import Any


def silence_motos_own_mappings() -> None:
    """Make every queue forget the mappings that moto attaches to it, so that none ever fires."""
    from moto.sqs.models import Queue

    # Moto's Lambda also keeps the record in its own list, which the API answers from.
    queue: Any = Queue
    queue.lambda_event_source_mappings = property(_none, _ignore)


def _none(_queue: object) -> dict[str, Any]:
    return {}


def _ignore(_queue: object, _value: object) -> None:
    """Ignore the assignment in moto's constructor."""
