"""(a) The archiver's cold start to the first answer of a pure-SQL task, against a bare process that imports what it
needs; (b) the same with forty registered tasks, against four. Both include connecting to the database.
"""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from tempfile import TemporaryDirectory

from bench.function_process import ROOT, bare_environment, seconds_to_first_answer
from bench.ratio import Ratio, alternate, timed

ROUNDS = 25
ENGINE = ROOT / "layers" / "engine"
PAYLOAD = {"task": "sweep_runs", "force": True}
IMPORTS = """
import psycopg
from pydantic import BaseModel
from aws_lambda_powertools import Logger, Metrics
"""


def measure(dsn: str) -> list[Ratio]:
    with TemporaryDirectory(prefix="signalbox-bench-") as folder:
        four, forty = (_write_pack(Path(folder), tasks) for tasks in (4, 40))

        def start(pack: str) -> float:
            environ = {"SIGNALBOX_DATABASE_URL": dsn, "SIGNALBOX_PACKS": pack}
            return seconds_to_first_answer("archiver", PAYLOAD, [ENGINE, Path(folder)], environ)

        alone, bare, with_four, with_forty = alternate(
            ROUNDS, lambda: start(""), timed(_import), lambda: start(four), lambda: start(forty)
        )
    return [
        Ratio("(a) the archiver's start to its first answer", "a process that only imports", alone, bare, 1.3),
        Ratio("(b) the same with forty tasks in a pack", "with four", with_forty, with_four, 1.05),
    ]


def _import() -> None:
    subprocess.run([sys.executable, "-c", IMPORTS], env=bare_environment(), check=True)


def _write_pack(folder: Path, tasks: int) -> str:
    """A pack with so many tasks, each a module of its own."""
    name = f"pack_of_{tasks}"
    (folder / name / "tasks").mkdir(parents=True)
    (folder / name / "migrations").mkdir()
    for number in range(tasks):
        (folder / name / "tasks" / f"task_{number}.py").write_text(f"def task_{number}(_): ...\n")
    rows = "".join(
        f"    Task('task_{number}', 'one', '{name}.tasks.task_{number}', schedule='cron({number} * * * ? *)'),\n"
        for number in range(tasks)
    )
    (folder / name / "pack.py").write_text(
        "from pathlib import Path\nfrom signalbox.packs import Pack\nfrom signalbox.registry import Task\n\n"
        f"PACK = Pack('{name}', (\n{rows}), Path(__file__).parent / 'migrations')\n"
    )
    return name
