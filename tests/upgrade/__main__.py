"""Run the last release's database tests on the schema of this tree: `make test-upgrade`.

While a deploy migrates, and after a roll-back, code of the last release works on the new schema. So its tests and its
code are unpacked, and this tree's migrations put in the place of its own. `last_release` names the release's commit;
arguments are pytest's, in the place of the usual choice of tests.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tarfile
import tempfile
from io import BytesIO
from pathlib import Path

HERE = Path(__file__).resolve().parent
ROOT = HERE.parents[1]
# Not those about a release's own migrations, and not those that hardly touch the schema and take long.
LEFT_OUT = (
    "tests/database/test_migrations.py",
    "tests/database/test_deploy_request.py",
    "tests/database/test_connection.py",
    "tests/database/test_rotation.py",
    "tests/database/test_roles.py",
    "tests/database/jobs/test_deliver_webhook.py",
    "tests/database/jobs/test_deliver_notification.py",
    "tests/database/jobs/test_lanes.py",
)
# A job's time-out may be raised within Hypothesis' own collector hook, which Python can only warn of.
QUIET = ("-W", "ignore::pytest.PytestUnraisableExceptionWarning")
CHOICE = ["tests/database", "layers/forecasts/tests/database", *(f"--ignore={path}" for path in LEFT_OUT)]


def main() -> int:
    release = (HERE / "last_release").read_text("utf-8").strip()
    with tempfile.TemporaryDirectory(prefix="signalbox-upgrade-") as name:
        folder = Path(name)
        _unpack(release, folder)
        _bring_migrations(folder)
        print(f"the tests of {release[:12]} on the schema of this tree", flush=True)
        rooms = [folder, *sorted(folder.glob("layers/*/")), folder / "cli", folder / "laptop"]
        command = [
            sys.executable,
            "-m",
            "pytest",
            *QUIET,
            *(sys.argv[1:] or ["-n", "auto", "--dist", "loadfile", *CHOICE]),
        ]
        environment = {**os.environ, "PYTHONPATH": os.pathsep.join(map(str, rooms))}
        return subprocess.run(command, cwd=folder, env=environment, check=False).returncode


def _unpack(commit: str, folder: Path) -> None:
    made = subprocess.run(["git", "archive", commit], cwd=ROOT, capture_output=True, check=False)
    if made.returncode:
        why = made.stderr.decode(errors="replace").strip()
        raise SystemExit(
            f"tests/upgrade/last_release names {commit}, which can't be read ({why}): name the last release's commit; "
            "in a shallow clone, `git fetch --unshallow` first"
        )
    with tarfile.open(fileobj=BytesIO(made.stdout)) as archive:
        archive.extractall(folder, filter="data")


def _bring_migrations(folder: Path) -> None:
    for migration in sorted(ROOT.glob("layers/*/*/migrations/*.sql")):
        place = folder / migration.relative_to(ROOT)
        if place.parent.exists():  # else it is of a pack that the release does not know
            shutil.copy(migration, place)


if __name__ == "__main__":
    sys.exit(main())
