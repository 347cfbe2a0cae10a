"""(a) Start each function cold to its first answer, from its built package, against its floor and its ceiling. (b)
Start the archiver with forty registered tasks, against four, and archiver and worker with all packs, against none. (c)
Start the api to its first answer over HTTP, as JSON and as a page, against the archiver.

The floor is AWS's runtime client with a handler that imports what each of them needs: psycopg, pydantic with a model,
Powertools' Logger and Metrics. It makes no connection to the database, while a function's first answer includes one.
The ceiling imports at its start all that any invocation might ever need: every module of the engine and a client for
each service of AWS. Bytecode is as in the layers.
"""

from __future__ import annotations

import shutil
from collections.abc import Mapping
from dataclasses import replace
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from typing import Any

import psycopg

from bench.ratio import Ratio, alternate
from bench.stage.function_process import Start
from bench.stage.job_plant import events_of, own_database
from bench.stage.packages import folder, laid_out
from signalbox.access.caller import Role
from signalbox.access.sessions import begin_session
from signalbox.access.tokens import create_token
from signalbox.engine_pack import ENGINE, load_packs
from signalbox.migrate import migrations
from signalbox.packs.registries import JobTypeRegistry
from signalbox.submit.insert import submit
from signalbox.submit.new_job import NewJob
from signalbox_laptop.lambda_runtime.packages import Artefact
from signalbox_laptop.packs import NAMES

ROUNDS = 25
WITH_PACKS = ("ArchiverFunction", "WorkerFunction")
FUNCTIONS = ("ArchiverFunction", "PollerFunction", "WorkerFunction", "DeadLetterFunction")
BOUND = 1.4
SWEEP = {"task": "sweep_runs", "force": True}
JOB_TYPE = "deliver_notification"
JOB = {"channel": "in_app", "recipients": ["somebody"], "subject": "a word", "body": "and another"}
FLOOR = """
import psycopg
from aws_lambda_powertools import Logger, Metrics
from pydantic import BaseModel

class Payload(BaseModel):
    task: str = ""

def handler(event, context):
    Payload(task="nothing")
    return {}
"""
BARE = "def handler(event, context):\n    return {}\n"
EAGER = """
from importlib import import_module
from pathlib import Path
import boto3, signalbox
opt = Path(signalbox.__file__).parents[1]
for path in sorted(Path(opt, "signalbox").rglob("*.py")):
    if path.stem == "issuer" or path.parent.name == "django":  # what they import is in no common layer
        continue
    import_module(".".join(path.relative_to(opt).with_suffix("").parts).removesuffix(".__init__"))
for service in ("events", "lambda", "s3", "secretsmanager", "sesv2", "sns", "sqs"):
    boto3.client(service)

from lazy_handler import handler
"""


def measure(dsn: str) -> list[Ratio]:
    return [
        *(ratio for name in FUNCTIONS for ratio in _against_floor(dsn, name)),
        _forty_tasks(dsn),
        *_with_packs(dsn),
        *_http(dsn),
    ]


def _against_floor(dsn: str, function: str) -> list[Ratio]:
    artefact, environ = laid_out(function), {"SIGNALBOX_DATABASE_URL": dsn}
    floor, bare = (
        Start(_in_place_of(artefact, name, code), {}, {}) for name, code in (("floor", FLOOR), ("bare", BARE))
    )
    eager = _in_place_of(artefact, "eager", EAGER)

    def start(what: Artefact) -> float:
        return Start(what, _payload(dsn, function), environ).seconds_to_first_answer()

    ours, least, nothing, most = alternate(
        ROUNDS,
        lambda: start(artefact),
        floor.seconds_to_first_answer,
        bare.seconds_to_first_answer,
        lambda: start(eager),
    )
    what = f"(a) {function}'s start to its first answer"
    return [
        Ratio(what, "its floor", ours, least, BOUND),
        Ratio(what, "a handler that imports nothing", ours, nothing),
        Ratio(what, "everything imported at its start", ours, most),
    ]


def _payload(dsn: str, function: str) -> Mapping[str, Any]:
    """Return a payload whose work is quick: the start is what is measured."""
    if function == "ArchiverFunction":
        return SWEEP
    if function == "WorkerFunction":
        return events_of([_submitted(dsn)], 1, JOB_TYPE)[0]
    return {} if function == "PollerFunction" else {"Records": []}


def _submitted(dsn: str) -> str:
    with psycopg.connect(dsn, autocommit=True) as db:
        (job,) = submit(
            db, JobTypeRegistry(ENGINE.job_types), [NewJob(job_type=JOB_TYPE, payload=JOB)], datetime.now(UTC)
        )
        return job.id


def _in_place_of(artefact: Artefact, name: str, code: str) -> Artefact:
    """Return the function with another handler, which finds the original as `lazy_handler`."""
    task_root = folder() / name / artefact.task_root.name
    task_root.mkdir(parents=True)
    shutil.copy(artefact.task_root / "handler.py", task_root / "lazy_handler.py")
    (task_root / "handler.py").write_text(code)
    return replace(artefact, task_root=task_root)


def _forty_tasks(dsn: str) -> Ratio:
    four, forty = (_with_pack(laid_out("ArchiverFunction"), tasks, dsn) for tasks in (4, 40))
    with_four, with_forty = alternate(ROUNDS, four.seconds_to_first_answer, forty.seconds_to_first_answer)
    return Ratio("(b) the archiver's start with forty tasks in a pack", "with four", with_forty, with_four, 1.05)


def _with_packs(dsn: str) -> list[Ratio]:
    with own_database(dsn) as own:
        with psycopg.connect(own, autocommit=True) as db:
            migrations.apply(db, load_packs(NAMES), "bench")

        def start(function: str, packs: str) -> float:
            environ = {"SIGNALBOX_DATABASE_URL": own, "SIGNALBOX_PACKS": packs}
            return Start(laid_out(function), _payload(own, function), environ).seconds_to_first_answer()

        took = alternate(
            ROUNDS, *(partial(start, name, packs) for name in WITH_PACKS for packs in (",".join(NAMES), ""))
        )
    return [
        Ratio(f"(b) the start of {name} with {len(NAMES)} packs", "without any", ours, without, 1.05)
        for name, ours, without in zip(WITH_PACKS, took[::2], took[1::2], strict=True)
    ]


def _http(dsn: str) -> list[Ratio]:
    with psycopg.connect(dsn, autocommit=True) as db:
        token = create_token(db, "bench", Role.VIEWER, tenant=None, by="bench", expires_at=None)["token"]
        secret = begin_session(db, token)
    json_list = _request("/v1/jobs", headers={"authorization": f"Bearer {token}"})
    page = _request("/jobs", cookies=[f"signalbox-session={secret}"])
    environ = {"SIGNALBOX_DATABASE_URL": dsn}
    api, pages, archiver = (
        Start(laid_out(f"{name}Function"), asked, environ)
        for name, asked in (("Api", json_list), ("Api", page), ("Archiver", SWEEP))
    )
    ours, shown, theirs = alternate(
        ROUNDS, api.seconds_to_first_answer, pages.seconds_to_first_answer, archiver.seconds_to_first_answer
    )
    what = "(c) the api's start to its first answer over HTTP, a list of jobs"
    return [
        Ratio(f"{what} as JSON", "the archiver", ours, theirs, 1.5),
        Ratio(f"{what} as a page", "the archiver", shown, theirs, 1.5),
    ]


def _request(path: str, **fields: Any) -> dict[str, Any]:
    http = {"http": {"method": "GET", "path": path}}
    return {"version": "2.0", "rawPath": path, "headers": {}, "requestContext": http, **fields}


def _with_pack(artefact: Artefact, tasks: int, dsn: str) -> Start:
    """Return the function with a pack of this many tasks beside its handler."""
    task_root, name = folder() / f"with-{tasks}-tasks", f"pack_of_{tasks}"
    shutil.copytree(artefact.task_root, task_root)
    _write_pack(task_root / name, name, tasks)
    environ = {"SIGNALBOX_DATABASE_URL": dsn, "SIGNALBOX_PACKS": name}
    return Start(replace(artefact, task_root=task_root), SWEEP, environ)


def _write_pack(pack: Path, name: str, tasks: int) -> None:
    """Write a pack with each task in a module of its own."""
    (pack / "tasks").mkdir(parents=True)
    (pack / "migrations").mkdir()
    for number in range(tasks):
        (pack / "tasks" / f"task_{number}.py").write_text(f"def task_{number}(_): ...\n")
    rows = "".join(
        f"    Task('task_{number}', 'one', '{name}.tasks.task_{number}', schedule='cron({number} * * * ? *)'),\n"
        for number in range(tasks)
    )
    (pack / "pack.py").write_text(
        "from pathlib import Path\nfrom signalbox.packs.pack import Pack\nfrom signalbox.packs.task import Task\n\n"
        f"PACK = Pack('{name}', (\n{rows}), Path(__file__).parent / 'migrations')\n"
    )
