"""A stage with the tests' job types, for the tasks that sweep over jobs, and two of it at once."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from threading import Barrier, Thread
from typing import Any

from signalbox.packs.registries import JobTypeRegistry
from tests.support.invoke_recorder import InvokeRecorder
from tests.support.jobs import TEST_JOB_TYPES
from tests.support.stage import Stage


class Sweeps(Stage):
    """Owns an engine."""

    def __init__(self, dsn: str, invokes: InvokeRecorder, **environ: str) -> None:
        super().__init__(dsn, invokes, **environ)
        self.engine = replace(
            self.engine, resources=replace(self.engine.resources, job_types=JobTypeRegistry(TEST_JOB_TYPES))
        )


def at_once(*acts: Callable[[], Any]) -> list[Any]:
    """Lets them go at the same moment, each in a thread; what they answered, or the errors, in their order."""
    gate, answers = Barrier(len(acts)), dict[int, Any]()

    def run(place: int, act: Callable[[], Any]) -> None:
        gate.wait()
        try:
            answers[place] = act()
        except Exception as error:
            answers[place] = error

    threads = [Thread(target=run, args=numbered) for numbered in enumerate(acts)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return [answers[place] for place in range(len(acts))]
