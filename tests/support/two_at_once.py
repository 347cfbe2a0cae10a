"""Two workers on two connections, let go at the same moment."""

from __future__ import annotations

from datetime import datetime
from threading import Barrier, Thread
from typing import Any

from tests.support.invoke_recorder import InvokeRecorder
from tests.support.stage import Stage


def two_at_once(dsn: str, invokes: InvokeRecorder, task: str, *at: datetime) -> list[dict[str, Any]]:
    """Runs the task for two slots at once; both answers, or the errors."""
    gate, answers = Barrier(len(at), timeout=30), list[dict[str, Any]]()

    def work(instant: datetime) -> None:
        with Stage(dsn, invokes, packs="forecasts") as stage:
            stage.engine.resources.database.connection()
            gate.wait()
            try:
                answers.append(stage.invoke(task, instant))
            except Exception as error:
                answers.append({"status": repr(error)})

    threads = [Thread(target=work, args=(instant,)) for instant in at]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return answers
