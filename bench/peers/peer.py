"""Run another job queue, installed beside the project, with an interpreter, a process and a database of its own."""

from __future__ import annotations

import subprocess
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from bench.ratio import alternate
from bench.stage.job_plant import own_database

HERE = Path(__file__).parent
INTERPRETER = HERE.parents[1] / ".venv-peers" / "bin" / "python"


@dataclass(frozen=True, slots=True)
class Peer:
    """Drain this many jobs whenever asked."""

    jobs: int
    process: subprocess.Popen[str]

    def drain(self, way: str) -> float:
        """Return how many seconds it took, without the submits."""
        assert self.process.stdin
        assert self.process.stdout
        print(way, file=self.process.stdin, flush=True)
        if not (answer := self.process.stdout.readline()):
            raise RuntimeError(f"the peer ended instead of draining its jobs with '{way}'")
        return float(answer)

    def fastest(self, ways: list[str]) -> str:
        taken = alternate(3, *map(self.draining, ways))
        return ways[taken.index(min(taken))]

    def draining(self, way: str) -> Callable[[], float]:
        return lambda: self.drain(way)


@contextmanager
def peer(dsn: str, name: str, jobs: int, wait: float = 0) -> Iterator[Peer]:
    """Start a peer; its jobs do nothing, or wait this many seconds."""
    if not INTERPRETER.exists():
        raise RuntimeError(f"{INTERPRETER} does not exist: `make bench` installs the peers")
    command = [str(INTERPRETER), str(HERE / f"peer_{name}.py")]
    with own_database(dsn) as own:
        arguments = [*command, own, str(jobs), str(wait)]
        with subprocess.Popen(arguments, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
            try:
                yield Peer(jobs, process)
            finally:
                process.stdin.close()  # type: ignore[union-attr]
                process.wait()
