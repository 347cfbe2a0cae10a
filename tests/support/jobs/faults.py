"""Do what harms a worker, or would: the acts of jobs of four kinds, and the expected end of each."""

from __future__ import annotations

import asyncio
import os
import signal
import time
from collections.abc import Callable
from typing import Any

KINDS = ("act", "act_async", "act_within", "act_alone")
KEPT: list[Any] = []
HANG_SECONDS = 1.0  # beyond its time-out, and beyond the driver's patience with it


def note(context: Any) -> None:
    context.db.execute("INSERT INTO notes VALUES (%s)", (context.job.id,))


def spin(_: Any) -> None:
    until = time.monotonic() + 20
    while time.monotonic() < until:
        pass


def sleep_in_c(_: Any) -> None:
    time.sleep(HANG_SECONDS)


async def sleep_in_c_on_loop(_: Any) -> None:
    time.sleep(HANG_SECONDS)


def raising(error: type[BaseException]) -> Callable[[Any], Any]:
    def raise_it(_: Any) -> None:
        raise error

    return raise_it


def raising_on_loop(error: type[BaseException]) -> Callable[[Any], Any]:
    async def raise_it(_: Any) -> None:
        raise error

    return raise_it


async def raise_in_task(_: Any) -> None:
    await asyncio.create_task(raising_on_loop(SystemExit)(_))


def leave_open(context: Any) -> None:
    with context.db.connection() as db:
        db.execute("BEGIN")


async def leave_open_on_loop(context: Any) -> None:
    async with context.db.connection() as db:
        await db.execute("BEGIN")


def keep_open(context: Any) -> None:
    """Keep a connection that never comes back."""
    KEPT.append(context.db.transaction())
    KEPT[-1].__enter__()


async def keep_open_on_loop(context: Any) -> None:
    KEPT.append(context.db.transaction())
    await KEPT[-1].__aenter__()


def close_connection(context: Any) -> None:
    with context.db.connection() as db:
        db.close()


def close_own_connection(context: Any) -> None:
    context.db.close()


async def close_connection_on_loop(context: Any) -> None:
    async with context.db.connection() as db:
        await db.close()


async def stop_loop(_: Any) -> None:
    asyncio.get_running_loop().stop()
    await asyncio.sleep(0)


async def close_loop(_: Any) -> None:
    await asyncio.to_thread(asyncio.get_running_loop().close)


def fork(in_child: Callable[[Any], Any]) -> Callable[[Any], Any]:
    def act(context: Any) -> None:
        if not (child := os.fork()):
            in_child(context)
            return
        wait_for(child)

    return act


def fork_on_loop(context: Any) -> Any:
    async def act() -> None:
        if not (child := os.fork()):
            await context.db.execute("INSERT INTO notes VALUES (gen_random_uuid())")
            return
        wait_for(child)

    return act()


def fork_in_transaction(context: Any) -> None:
    with context.db.transaction():
        if not (child := os.fork()):
            return
        wait_for(child)


def wait_for(child: int) -> None:
    """Wait until it ends by itself."""
    for _ in range(500):
        if os.waitpid(child, os.WNOHANG)[0]:
            return
        time.sleep(0.01)
    os.kill(child, signal.SIGKILL)
    os.waitpid(child, 0)
    raise AssertionError("the child went on")


DEEDS: dict[tuple[str, str], tuple[Callable[[Any], Any], str]] = {  # by name and kind: what becomes of the culprit
    **{("spin", kind): (spin, "failed") for kind in ("act", "act_within", "act_alone")},
    **{("sleep in C", kind): (sleep_in_c, "failed") for kind in ("act", "act_within", "act_alone")},
    ("sleep in C", "act_async"): (sleep_in_c_on_loop, "failed"),
    **{
        (error.__name__, kind): (raise_it(error), "failed")
        for error in (SystemExit, KeyboardInterrupt, GeneratorExit)
        for kind, raise_it in zip(KINDS, (raising, raising_on_loop, raising, raising), strict=True)
    },
    ("SystemExit in a task", "act_async"): (raise_in_task, "failed"),
    ("leave open", "act"): (leave_open, "failed"),
    ("leave open", "act_async"): (leave_open_on_loop, "failed"),
    ("keep open", "act"): (keep_open, "failed"),
    ("keep open", "act_async"): (keep_open_on_loop, "failed"),
    ("keep open", "act_within"): (keep_open, "completed"),
    ("keep open", "act_alone"): (keep_open, "completed"),
    ("close connection", "act"): (close_connection, "completed"),
    ("close connection", "act_async"): (close_connection_on_loop, "completed"),
    ("close connection", "act_within"): (close_own_connection, "failed"),
    ("close connection", "act_alone"): (close_own_connection, "failed"),
    ("stop loop", "act_async"): (stop_loop, "failed"),
    ("close loop", "act_async"): (close_loop, "failed"),
    ("fork and write", "act_async"): (fork_on_loop, "completed"),
    ("fork in a transaction", "act"): (fork_in_transaction, "completed"),
    **{
        (f"fork and {what}", kind): (fork(in_child), "completed")
        for what, in_child in (("write", note), ("return", id), ("exit", raising(SystemExit)))
        for kind in ("act", "act_within", "act_alone")
    },
}
