"""Bring up a stack with one pack and its sample data, as the demo does with all of them."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from importlib import import_module
from pathlib import Path

import psycopg

from signalbox_laptop.home import StackState
from signalbox_laptop.up import StackOptions, down, up
from tests.support.laptop import quiet
from tests.support.template import SWITCHES

AT = datetime(2026, 1, 5, 2, 30, tzinfo=UTC)  # the demo's instant, which the stories are made for
_OPEN = "SELECT job_type, status FROM signalbox.jobs WHERE completed_at IS NULL"
_PATIENCE_SECONDS = 60.0


@contextmanager
def stack_with_story(pack: str, home: Path, **parameters: str) -> Iterator[StackState]:
    """Yield a stack with this pack alone, its story loaded."""
    alone = dict.fromkeys(SWITCHES, "off") | {f"{pack.title()}Pack": "on"} | parameters
    state = up(StackOptions(home=home, port=0, clock=False, durable=False, parameters=alone), quiet)
    try:
        assert import_module(f"samples.{pack}").load_story(state, AT)
        yield state
    finally:
        down(home, quiet)


def wait_for_jobs(state: StackState) -> None:
    """Wait until all jobs have ended."""
    until = time.monotonic() + _PATIENCE_SECONDS
    with psycopg.connect(state.database, autocommit=True) as connection:
        while (left := connection.execute(_OPEN).fetchall()) and time.monotonic() < until:
            time.sleep(0.2)
    assert left == []
