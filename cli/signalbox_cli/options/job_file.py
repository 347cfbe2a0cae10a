"""Read jobs from a file, a JSON array or one JSON object a line, and split them into calls that Lambda accepts."""

from __future__ import annotations

import json
import re
import sys
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from signalbox_cli.errors import FunctionFailed, UsageRefused

Job = dict[str, Any]
# Lambda takes six megabytes and returns as many; the answer for a job is about two hundred bytes.
MOST_BYTES, MOST_JOBS = 5_000_000, 20_000
# The engine names a job of a call by its number, or by its field in the payload.
_NAMED = re.compile(r"job (\d+) of \d+: |'jobs\.(\d+)[.']")


@dataclass(frozen=True, slots=True)
class JobFile:
    """Pair the jobs of a file with their places in it."""

    name: str
    jobs: list[Job]
    places: list[str]  # " line 3", or " job 3" in an array

    def located(self, error: FunctionFailed, first: int) -> FunctionFailed:
        """Add to a call's error the file's place of the job that it names, if any; `first` is the call's first job."""
        found = _NAMED.search(str(error))
        if found is None:
            return error
        index = first + (int(found[1]) - 1 if found[1] else int(found[2]))
        return FunctionFailed(f"--file {self.name}{self.places[index]}: {error}", error.kind)


def read_jobs(name: str) -> JobFile:
    """Read the file's jobs; - is the standard input."""
    try:
        text = sys.stdin.read() if name == "-" else Path(name).read_text("utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise UsageRefused(f"--file {name} can't be read: {error}") from None
    found = list(_parse(name, text))
    if not found:
        raise UsageRefused(f"--file {name} contains no job")
    return JobFile(name, [job for _, job in found], [place for place, _ in found])


def _parse(name: str, text: str) -> Iterator[tuple[str, Job]]:
    if text.lstrip().startswith("["):
        yield from ((f" job {number}", job) for number, job in enumerate(_checked(name, "", _json(name, "", text)), 1))
        return
    for number, line in enumerate(text.splitlines(), 1):
        if line.strip():
            place = f" line {number}"
            yield from ((place, job) for job in _checked(name, place, [_json(name, place, line)]))


def _json(name: str, where: str, text: str) -> Any:
    try:
        return json.loads(text)
    except ValueError as error:
        raise UsageRefused(f"--file {name}{where} is not JSON: {error}") from None


def _checked(name: str, where: str, jobs: Sequence[Any]) -> Iterator[Job]:
    for job in jobs:
        if not isinstance(job, dict) or not isinstance(job.get("job_type"), str):
            raise UsageRefused(
                f"--file {name}{where} holds a value that is not a job: expected an object with a job_type, such as "
                '{"job_type": "run_task", "payload": {…}}'
            )
        yield job


def calls(jobs: Sequence[Job]) -> list[list[Job]]:
    """Split jobs into as few calls as possible. A call's jobs succeed or fail together; `ref` works within a call."""
    found: list[list[Job]] = [[]]
    size = 0
    for job in jobs:
        length = len(json.dumps(job)) + 2
        if found[-1] and (size + length > MOST_BYTES or len(found[-1]) == MOST_JOBS):
            found.append([])
            size = 0
        found[-1].append(job)
        size += length
    if len(found) > 1 and any("ref" in job for job in jobs):
        raise UsageRefused(
            f"{len(jobs):,} jobs are too many for one call, and a ref is valid only within one call: "
            "split the file so that jobs and their refs stay together, and submit the parts"
        )
    return found


def counted(jobs: Sequence[Job]) -> str:
    """Return how many jobs there are of each type."""
    types = Counter(job["job_type"] for job in jobs)
    return ", ".join(f"{number:,} {name}" for name, number in types.most_common())
