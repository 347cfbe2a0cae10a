"""Where files and tables meet in tests: a worker with the engine's own job types, and S3 behind a front that fails."""

from __future__ import annotations

import uuid
from typing import Any

import boto3
import psycopg
from botocore.config import Config

from signalbox.job_types import JOB_TYPES
from tests.support.s3_front import S3Front
from tests.support.stage import Stage
from tests.support.workshop import Workshop

FINAL = ("completed", "failed", "cancelled")


class Depot(Workshop):
    """One test's worker, bucket and tables in the schema public."""

    def __init__(self, stage: Stage, db: psycopg.Connection, endpoint: str, front: S3Front) -> None:
        super().__init__(stage, db, JOB_TYPES)
        self.front = front
        self.s3 = boto3.client("s3", endpoint_url=endpoint, config=Config(s3={"addressing_style": "path"}))
        self.bucket = self.engine.resources.settings.jobs_bucket or ""
        self.s3.create_bucket(Bucket=self.bucket)
        self.other_bucket = stage.engine.resources.settings.file_transfers.buckets[-1]

    def put(self, content: bytes | str, key: str = "") -> str:
        key = key or f"in/{uuid.uuid4().hex}"
        body = content.encode() if isinstance(content, str) else content
        self.s3.put_object(Bucket=self.bucket, Key=key, Body=body)
        return key

    def get(self, key: str) -> bytes:
        return self.s3.get_object(Bucket=self.bucket, Key=key)["Body"].read()

    def keys(self) -> list[str]:
        return [entry["Key"] for entry in self.s3.list_objects_v2(Bucket=self.bucket).get("Contents", [])]

    def begin(self, job_type: str, payload: dict[str, Any], **fields: Any) -> str:
        return self.submit(job_type, payload=payload, **fields).id

    def step(self, job_id: str, seconds: float = 360) -> dict[str, Any]:
        """One delivery of the job's message, as if its time had come."""
        self.make_due(job_id)
        self.work(job_id, seconds=seconds)
        return self.job(job_id)

    def finish(self, job_id: str, seconds: float = 360, most: int = 500) -> dict[str, Any]:
        """Works on it until it has ended."""
        for _ in range(most):
            job = self.step(job_id, seconds)
            if job["status"] in FINAL:
                return job
        raise AssertionError(f"job {job_id} has not ended after {most} attempts: {job['status']}")

    def bring(self, content: bytes | str, **payload: Any) -> dict[str, Any]:
        """Imports it; answers the job."""
        asked = {"key": self.put(content), "table": "public.people"} | payload
        return self.finish(self.begin("import_table", asked))

    def rows(self, statement: str = "SELECT * FROM people ORDER BY 1") -> list[Any]:
        return self.db.execute(statement.encode()).fetchall()
