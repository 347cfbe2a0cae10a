"""`make test-at`: run tests as if it were another instant, for Python and PostgreSQL alike.

The first argument is the instant, or `next` for one of the list in turn, a day each; the others are pytest's.
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from datetime import UTC, datetime
from pathlib import Path

INSTANTS = [
    "2026-11-26T00:05:00Z",  # a Thursday, before that day's nightly tasks
    "2027-12-31T23:58:00Z",
    "2028-02-29T12:00:00Z",
    "2027-03-28T00:58:00Z",  # the clocks of Europe go forward
    "2027-11-07T05:58:00Z",  # those of New York go back
    "2027-08-31T02:25:00Z",
]
SOURCE = Path(__file__).with_name("shifted_clock.c")


def main(instant: str, *arguments: str) -> int:
    now = datetime.now(UTC)
    chosen = INSTANTS[now.toordinal() % len(INSTANTS)] if instant == "next" else instant
    shift = int((datetime.fromisoformat(chosen).astimezone(UTC) - now).total_seconds())
    print(f"the tests at {chosen}", flush=True)
    with tempfile.TemporaryDirectory(prefix="signalbox-clock-") as folder:
        library = Path(folder, "shifted_clock.so")
        subprocess.run(["cc", "-O2", "-shared", "-fPIC", "-o", library, SOURCE], check=True)
        # A user other than root, as the server's is, must reach it.
        Path(folder).chmod(0o755)
        environment = os.environ | {"LD_PRELOAD": str(library), "SIGNALBOX_CLOCK_SHIFT": str(shift)}
        return subprocess.run([sys.executable, "-m", "pytest", *arguments], env=environment, check=False).returncode


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
