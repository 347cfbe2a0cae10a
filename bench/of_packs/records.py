"""Read a scan of 100 pages, ask a model once a pass, and process files against a model that takes a second.

The floor of a scan and of a pass is the same calls of AWS by boto3 alone, to stand-ins that answer at once. Files go
through the three passes by two workers with 50 jobs at once each; the floor is the model's own time. Files are in moto.
`python -m bench.of_packs.records 10` takes a tenth of the files.
"""

from __future__ import annotations

import io
import os
import sys
from collections.abc import Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from contextlib import closing, contextmanager, redirect_stdout
from functools import cache
from itertools import repeat
from multiprocessing import get_context
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import psycopg

from bench.ratio import Ratio, timed
from bench.stage.database import bench_database
from bench.stage.job_plant import own_database
from bench.stage.lane import Lane
from bench.stage.watch import watched
from records.pack import PACK
from signalbox import NewJob
from signalbox.aws.clients import converse_client
from signalbox.engine_pack import ENGINE
from signalbox.migrate import migrations
from signalbox.postgres.queries import load_queries
from signalbox.testing.stage import Stage
from signalbox_laptop.aws import client
from signalbox_laptop.moto.process import MotoProcess
from signalbox_laptop.stand_ins.aws_services import AwsServices
from tests.support.clinic import ASTHMA, PAGE, Clinic, coded, found, narrated
from tests.support.pdfs import pdf

SQL = load_queries(__file__)
FILES, SCANNED_PAGES, LINES, ROUNDS = 10_000, 100, 40, 20
WORKERS, AT_ONCE, BATCH = 2, 50, 250
BUCKET, MODEL_SECONDS = "bench", 1.0
ANSWERS = (found(ASTHMA, times=0), coded([1], times=0), narrated(times=0))


def measure(dsn: str, part: int = 1) -> list[Ratio]:
    with own_database(dsn) as own, _services() as services, psycopg.connect(own, autocommit=True) as db:
        migrations.apply(db, [ENGINE, PACK], "bench")
        with _open(own) as stage:
            clinic = Clinic(stage, services, _s3(), BUCKET)
            with redirect_stdout(io.StringIO()):
                alone = [_scan(clinic), _passes(clinic)]
            return [*alone, _many(own, clinic, FILES // part)]


@contextmanager
def _services() -> Iterator[AwsServices]:
    """Lead this process and those that it starts to moto and the stand-ins."""
    environ = dict(os.environ)
    with TemporaryDirectory(prefix="signalbox-bench-") as home:
        moto = MotoProcess(Path(home))
        address = moto.start()
        services = AwsServices(address)
        try:
            services.start()
            os.environ |= {"AWS_ENDPOINT_URL": address, "AWS_DEFAULT_REGION": "us-east-1"}
            os.environ |= {"AWS_ACCESS_KEY_ID": "test", "AWS_SECRET_ACCESS_KEY": "test", **services.environment}
            _s3().create_bucket(Bucket=BUCKET)
            yield services
        finally:
            services.stop()
            moto.stop()
            os.environ.clear()
            os.environ |= environ


def _s3() -> Any:
    return client("s3", os.environ["AWS_ENDPOINT_URL"])


def _open(dsn: str) -> Stage:
    """Open a function with the pack; what it sends to SQS is kept in its memory."""
    stage = Stage(dsn, packs="records", jobs_bucket=BUCKET)
    vars(stage.app.resources.clients)["sqs"] = Lane()
    return stage


# ---- One at a time


def _scan(clinic: Clinic) -> Ratio:
    file = clinic.upload(data=pdf(*[[]] * SCANNED_PAGES))
    clinic.scans(file, [[f"line {number} of a page of a scan" for number in range(LINES)]] * SCANNED_PAGES)
    key = clinic.file(file)["raw_file"]
    textract: Any = clinic.stage.app.resources.clients.textract

    def by_hand() -> None:
        place = {"S3Object": {"Bucket": BUCKET, "Name": key}}
        job = textract.start_document_text_detection(DocumentLocation=place, ClientRequestToken=os.urandom(8).hex())
        answer: Any = textract.get_document_text_detection(JobId=job["JobId"])
        while token := answer.get("NextToken"):
            answer = textract.get_document_text_detection(JobId=job["JobId"], NextToken=token)

    def by_job() -> None:
        job = clinic.stage.step(clinic.submit(file))
        _check(clinic.step(job))

    ours, theirs = (min(timed(act)() for _ in range(3)) for act in (by_job, by_hand))
    return Ratio(f"a scan of {SCANNED_PAGES} pages", "Textract's calls alone", 1000 * ours, 1000 * theirs)


def _passes(clinic: Clinic) -> Ratio:
    clinic.answers(*ANSWERS)
    jobs = [clinic.passed(str(clinic.read(clinic.upload())["id"]), 1) for _ in range(ROUNDS)]
    took = []
    for number in (1, 2, 3):
        took.append(timed(lambda: _step_all(clinic, jobs))())  # noqa: B023 - called at once
        if number < 3:
            jobs = [clinic.passed(str(job["payload"]["processing_session_id"]), number + 1) for job in jobs]
    asked = clinic.asked()[-3 * ROUNDS :]
    floor = timed(lambda: _converse_all(asked))()
    each = 1000 / ROUNDS / 3
    return Ratio("a pass of a file of one page", "the model's call alone", each * sum(took), each * floor)


def _step_all(clinic: Clinic, jobs: Sequence[dict[str, Any]]) -> None:
    for job in jobs:
        _check(clinic.step(job))


def _converse_all(requests: Sequence[dict[str, Any]]) -> None:
    """Ask each by a client of its own, as a pass does, whose time-out is its attempt's."""
    for request in requests:
        with closing(converse_client(30)) as model:
            model.converse(**request)


def _check(job: dict[str, Any]) -> None:
    if job["status"] != "completed":
        raise RuntimeError(f"{job['job_type']} is {job['status']}: {job['error_details']}")


# ---- Many at once


def _many(dsn: str, clinic: Clinic, files: int) -> Ratio:
    clinic.answers(*({**answer, "hang_seconds": MODEL_SECONDS} for answer in ANSWERS))
    clinic.s3.put_object(Bucket=BUCKET, Key="letter", Body=pdf(PAGE))
    clinic.db.execute("TRUNCATE signalbox.jobs CASCADE")
    patient = clinic.patient()
    made = clinic.db.execute(SQL["fill"], {"files": files, "patient": patient}).fetchall()
    file = {"patient_id": patient, "raw_file": "letter"}
    clinic.stage.submit_all([NewJob("shell_file_processing", {"shell_file_id": id_, **file}) for (id_,) in made])
    steps = []
    with ProcessPoolExecutor(WORKERS, get_context("spawn")) as workers, watched(dsn, SQL["connections"], 0.2) as seen:
        list(workers.map(_work, [dsn] * WORKERS, [[]] * WORKERS))  # so that they have started
        for number in range(4):
            ids = [id_ for (id_,) in clinic.db.execute(SQL["next"], {"pass": number}).fetchall()]
            batches = [ids[place : place + BATCH] for place in range(0, len(ids), BATCH)]
            steps.append(timed(lambda: list(workers.map(_work, repeat(dsn), batches)))())  # noqa: B023 - called at once
    [(completed,)] = clinic.db.execute(SQL["completed"]).fetchall()
    if completed != files:
        raise RuntimeError(f"of {files} files {completed} are completed")
    reading, *passes = steps
    what = f"{files:,} files through three passes, {WORKERS} workers with {AT_ONCE} jobs at once"
    print(f"{what}: {3 * files / sum(passes):,.0f} passes/s; reading {files / reading:,.0f} files/s")
    print(f"{what}: {max(seen):.0f} connections at most, with {WORKERS * AT_ONCE} jobs at work")
    floor = 3 * files * MODEL_SECONDS / (WORKERS * AT_ONCE)
    return Ratio(what, "the model's own time", 1000 * sum(passes), 1000 * floor)


def _work(dsn: str, ids: Sequence[str]) -> None:
    """Work off one event, in a worker's process."""
    with redirect_stdout(io.StringIO()):
        _stage_of(dsn).work(*ids, seconds=300)


_stage_of = cache(_open)  # for the life of a worker


if __name__ == "__main__":
    with bench_database() as dsn:
        print(*measure(dsn, int(sys.argv[1])), sep="\n")
