"""`make test-upgrade`: the last release's tests of the database, on databases that this tree's migrations have made.

The release is the commit that `last_release` names. Arguments are pytest's, in the place of the usual choice of tests.
"""

from __future__ import annotations

import os
import subprocess
import sys
import tarfile
import tempfile
from io import BytesIO
from pathlib import Path

HERE = Path(__file__).resolve().parent
ROOT = HERE.parents[1]
# Without those whose subject is a release's own migrations, and those that hardly touch the schema and take long.
CHOICE = [
    "tests/database",
    "--ignore=tests/database/test_migrations.py",
    "--ignore=tests/database/test_connection.py",
    "--ignore=tests/database/test_rotation.py",
    "--ignore=tests/database/test_roles.py",
    "--ignore=tests/database/forecasts/test_forecast_schema.py",
    "--ignore=tests/database/jobs/test_deliver_webhook.py",
    "--ignore=tests/database/jobs/test_deliver_notification.py",
    "--ignore=tests/database/jobs/test_lanes.py",
    # It compares the whole of what a migrator says, which names every schema that is newer.
    "--deselect=tests/database/test_deploy_request.py::"
    "test_the_migrator_of_a_roll_back_is_content_with_a_newer_schema_that_serves_it",
    # The doctor of that release takes a newer schema for a fault; the one of this tree does not.
    "--deselect=tests/database/test_observing.py::test_examine_says_how_the_database_stands",
]


def main() -> int:
    release = (HERE / "last_release").read_text("utf-8").strip()
    with tempfile.TemporaryDirectory(prefix="signalbox-upgrade-") as folder:
        _unpack(release, Path(folder))
        print(f"the tests of {release[:12]} on the schema of this tree", flush=True)
        command = [sys.executable, "-m", "pytest", "-n", "auto", *(sys.argv[1:] or CHOICE)]
        return subprocess.run(command, cwd=folder, env=_environment(Path(folder)), check=False).returncode


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


def _environment(release: Path) -> dict[str, str]:
    """Its own packages before this tree's, which are installed; only the migrations are this tree's."""
    rooms = [release, *sorted(release.glob("layers/*/"))]
    return {
        **os.environ,
        "PYTHONPATH": os.pathsep.join(map(str, rooms)),
        "SIGNALBOX_TEST_MIGRATE": f"'{sys.executable}' '{HERE / 'migrate.py'}'",
    }


if __name__ == "__main__":
    sys.exit(main())
