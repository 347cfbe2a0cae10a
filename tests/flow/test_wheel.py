"""The wheel works in fresh environments: each extra gives what it should, and an application submits with it."""

from __future__ import annotations

import json
import subprocess
import zipfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import psycopg
import pytest
import urllib3
from psycopg.conninfo import conninfo_to_dict

from tests.support.installed import build_wheel, install
from tests.support.template import ROOT

APPLICATION = """
import json, sys
import sqlalchemy
from flask import Flask
from signalbox import Client, NewJob
from sqlalchemy.orm import Session

engine = sqlalchemy.create_engine(sqlalchemy.URL.create("postgresql+psycopg", query=json.loads(sys.argv[1])))
client = Client()
app = Flask(__name__)

@app.post("/sweep/<how>")
def sweep(how):
    with Session(engine) as session, session.begin():
        [job] = client.submit(session, [NewJob("run_task", {"task": "sweep_runs"}, tags=[how])])
        if how == "refused":
            raise ValueError("after the job was submitted")
    return job._asdict()

web = app.test_client()
answers = [web.post(f"/sweep/{how}") for how in ("well", "refused")]
print(json.dumps([(answer.status_code, answer.json) for answer in answers]))
"""


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return build_wheel(tmp_path_factory.mktemp("wheel"))


@pytest.fixture(scope="module")
def plain(wheel: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Install the wheel without an extra."""
    return install(wheel, tmp_path_factory.mktemp("plain") / "venv")


@pytest.fixture(scope="module")
def whole(wheel: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Install the wheel with a laptop's stack, beside an application's own packages."""
    return install(wheel, tmp_path_factory.mktemp("whole") / "venv", "laptop", beside=["flask", "sqlalchemy"])


@pytest.fixture(scope="module")
def stack(whole: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[dict[str, Any]]:
    """Run the installed `signalbox up` in a project's folder; yield its answer."""
    home = tmp_path_factory.mktemp("stack")
    done = run(whole, "signalbox", "up", "--detach", "--json", "--port", "0", "--no-clock", "--home", home, folder=ROOT)
    assert done.returncode == 0, done.stderr
    yield json.loads(done.stdout)
    assert run(whole, "signalbox", "down", "--home", home).returncode == 0


def run(commands: Path, *words: object, folder: Path = Path("/"), **variables: str) -> subprocess.CompletedProcess[str]:
    around = {"PATH": f"{commands}:/usr/bin:/bin", "LC_ALL": "C.UTF-8", **variables}
    command = [str(commands / str(words[0])), *map(str, words[1:])]
    return subprocess.run(command, cwd=folder, env=around, capture_output=True, text=True, check=False)


def test_wheel_holds_our_packages_and_their_data(wheel: Path) -> None:
    with zipfile.ZipFile(wheel) as files:
        names = set(files.namelist())
    assert {name.partition("/")[0] for name in names if ".dist-info/" not in name} == {
        "signalbox",
        "signalbox_cli",
        "signalbox_laptop",
    }
    sources = {path.relative_to(ROOT / "layers/engine") for path in (ROOT / "layers/engine").rglob("*.sql")}
    assert sources
    assert {*map(str, sources), "signalbox/py.typed", "signalbox_laptop/samples/jobs.sql"} <= names


def test_plain_wheel_submits_and_has_no_library_of_aws(plain: Path, dsn: str) -> None:
    code = """if True:
        import sys, psycopg
        from importlib.util import find_spec
        from signalbox import Client, NewJob
        client = Client("any")
        with psycopg.connect(sys.argv[1]) as connection:
            jobs = client.submit(connection, [NewJob(name, payload) for name, payload in {
                "run_task": {"task": "sweep_runs"},
                "deliver_notification": {"channel": "in_app", "recipients": ["a"], "body": "b"},
            }.items()])
        print(len(jobs), client.send(jobs), *map(find_spec, ("boto3", "aws_lambda_powertools", "forecasts", "tests")))
    """
    done = run(plain, "python", "-c", code, dsn)
    assert (done.stdout, done.stderr) == ("2 0 None None None None\n", "")
    with psycopg.connect(dsn) as connection:
        assert connection.execute("SELECT count(*) FROM signalbox.jobs").fetchone() == (2,)


def test_plain_command_says_which_extra_it_needs(plain: Path, tmp_path: Path) -> None:
    assert run(plain, "signalbox", "--help").returncode == 0
    assert run(plain, "signalbox", "--version").stdout.startswith("signalbox ")
    for command, extra in (("jobs", "cli"), ("demo", "laptop")):
        done = run(plain, "signalbox", command, folder=tmp_path)
        assert (done.returncode, done.stderr.count("\n")) == (1, 1)
        assert f"pip install 'signalbox[{extra}]'" in done.stderr


def test_command_has_all_that_it_needs_with_its_extra(wheel: Path, tmp_path: Path) -> None:
    commands = install(wheel, tmp_path / "venv", "cli")
    loaded = run(commands, "signalbox", "completion", "bash")  # which loads them all
    assert (loaded.returncode, loaded.stderr) == (0, "")
    assert "no stack runs in" in run(commands, "signalbox", "jobs", folder=tmp_path).stderr
    assert "pip install 'signalbox[laptop]'" in run(commands, "signalbox", "up", folder=ROOT).stderr


def test_stack_needs_a_project(whole: Path, tmp_path: Path) -> None:
    done = run(whole, "signalbox", "up", folder=tmp_path)
    assert done.returncode == 1
    assert f"there is no project in {tmp_path}: a stack runs from a folder with template.yaml" in done.stderr


def test_flask_application_submits_with_its_session(whole: Path, stack: dict[str, Any]) -> None:
    database = conninfo_to_dict(stack["database"])
    aws = {"AWS_ACCESS_KEY_ID": "any", "AWS_SECRET_ACCESS_KEY": "any", "AWS_DEFAULT_REGION": stack["region"]}
    place = {"SIGNALBOX_STACK": stack["stack"], "AWS_ENDPOINT_URL": stack["endpoint"]}
    done = run(whole, "python", "-c", APPLICATION, json.dumps(database), **aws, **place)
    [well, refused] = json.loads(done.stdout)
    assert (well[0], well[1]["status"], refused[0]) == (200, "queued", 500)

    assert urllib3.request("GET", f"{stack['endpoint']}/_signalbox/idle?timeout=50").json()["idle"] is True
    with psycopg.connect(stack["database"]) as db:
        found = db.execute("SELECT id::text, tags, status, result ->> 'task' FROM signalbox.jobs").fetchall()
    assert found == [(well[1]["id"], ["well"], "completed", "sweep_runs")]
