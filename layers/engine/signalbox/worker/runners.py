"""Run jobs: in threads, on the event loop, and in the main thread, the only one that signals reach.

The loop belongs to the process and outlives an invocation; between two it has nothing to do.
"""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable, Iterable
from contextlib import suppress
from queue import SimpleQueue

from signalbox.worker.attempt import Attempt, AttemptResult
from signalbox.worker.timeout import SignalTimer

Done = Callable[[AttemptResult], None]


class Threads:
    """Own threads that take one attempt after the other: as many as may run at once, made when needed."""

    def __init__(self, done: Done) -> None:
        self._attempts: SimpleQueue[Attempt | None] = SimpleQueue()
        self._done = done
        self._number = 0

    def run(self, attempts: Iterable[Attempt], at_once: int) -> None:
        """Begin them, with this many threads in all."""
        for attempt in attempts:
            self._attempts.put(attempt)
        while self._number < at_once:
            self._number += 1
            threading.Thread(target=self._serve, name=f"job-{self._number}", daemon=True).start()

    def close(self) -> None:
        for _ in range(self._number):
            self._attempts.put(None)

    def _serve(self) -> None:
        while (attempt := self._attempts.get()) is not None:
            self._done(attempt.perform_in_thread())


class JobsLoop(asyncio.SelectorEventLoop):
    """Share one loop between all jobs, so that none may stop it. It refuses to be closed while it runs."""

    def stop(self) -> None:
        raise RuntimeError("the event loop is that of all jobs: none may stop it")

    async def shutdown_default_executor(self, *_: object) -> None:
        raise RuntimeError("the event loop's threads are those of all jobs: none may stop them")

    def serve(self) -> None:
        """Run again whenever a task raises to end the process: the error passes through the loop and to its awaiter."""
        while not self.is_closed():
            with suppress(BaseException):
                self.run_forever()


class Loop:
    """Own the event loop, in a thread of its own."""

    def __init__(self) -> None:
        self._loop: JobsLoop | None = None
        self._tasks: set[asyncio.Task[None]] = set()

    def run(self, attempts: Iterable[Attempt], done: Done) -> None:
        """Begin the attempts."""
        self.loop.call_soon_threadsafe(self._begin, list(attempts), done)

    @property
    def loop(self) -> JobsLoop:
        if self._loop is None:
            self._loop = JobsLoop()
            threading.Thread(target=self._loop.serve, name="event-loop", daemon=True).start()
        return self._loop

    def _begin(self, attempts: Iterable[Attempt], done: Done) -> None:
        for attempt in attempts:
            task = self.loop.create_task(_perform(attempt, done))
            self._tasks.add(task)
            task.add_done_callback(self._tasks.discard)


async def _perform(attempt: Attempt, done: Done) -> None:
    done(await attempt.perform_on_loop())


class MainThread:
    """Perform in the thread that calls `serve` what other threads hand over."""

    def __init__(self, done: Done) -> None:
        self._attempts: SimpleQueue[Attempt | None] = SimpleQueue()
        self._done = done

    def run(self, attempt: Attempt) -> None:
        self._attempts.put(attempt)

    def close(self) -> None:
        """Announce that no more attempts are coming."""
        self._attempts.put(None)

    def serve(self) -> None:
        """Perform attempts until it is closed."""
        with SignalTimer() as alarm:
            while (attempt := self._attempts.get()) is not None:
                self._done(attempt.perform_in_main_thread(alarm))


LOOP = Loop()
