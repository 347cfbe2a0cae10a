"""Keeps moto from acting on event source mappings: in its process, they become records and nothing else.

Moto invokes the function itself, through Docker, while the sender waits in SendMessage, and answers for the whole
queue at once; the laptop's own pollers do it as AWS does. To be called before moto serves its first request.
"""

from __future__ import annotations

from typing import Any


def silence_motos_own_mappings() -> None:
    """Make every queue of this process forget the mappings that moto hangs on it, and so never fire one."""
    from moto.sqs.models import Queue

    # Moto's Lambda keeps the record in its own list too, which is what the API answers from.
    queue: Any = Queue
    queue.lambda_event_source_mappings = property(_none, _ignore)


def _none(_queue: object) -> dict[str, Any]:
    return {}


def _ignore(_queue: object, _value: object) -> None:
    """Moto's constructor assigns the attribute."""
