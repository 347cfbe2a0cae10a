"""What AWS lets a lane do, as its documentation had it in 2026, and what the database behind it has."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Limits:
    """Of one mapping on a standard queue, one function, one account, one database."""

    first_batches: int = 5  # that a mapping works on at once when messages appear
    more_a_minute: int = 300  # by which that grows while messages are left
    mapping: int = 1_250  # the most at once; MaximumConcurrency may be up to 1,000
    function_a_second: int = 100  # 1,000 environments in ten seconds
    account: int = 1_000  # an account's concurrency, before it is raised
    in_flight: int = 120_000  # messages that a standard queue hands out before some are deleted
    connections: int = 400  # of the database, one a worker, less some for others
    cores: float = 4.0  # of the database
