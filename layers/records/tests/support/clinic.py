"""Upload files of patients, say what Textract and the model answer, and have the files processed."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Any
from uuid import uuid4

import psycopg

from signalbox import NewJob
from signalbox.testing.rows import select
from signalbox.testing.stage import Stage
from signalbox_laptop.stand_ins.aws_services import AwsServices
from tests.support.pdfs import pdf
from tests.support.product_rows import insert
from tests.support.stand_ins import calls_of, instruct

NAME, BORN = "Ana Lima", "1980-02-29"
PAGE = ["Ana Lima, born 1980-02-29", "Asthma J45.9 since 2011", "Salbutamol 100 ug"]
ASTHMA = {"type": "condition", "text": "Asthma J45.9 since 2011", "page": 1, "confidence": 0.9}
SALBUTAMOL = {"type": "medication", "text": "Salbutamol 100 ug", "page": 1, "confidence": 0.8}
ANA = {"name": NAME, "date_of_birth": BORN, "page": 1}


def found(*entities: Any, subjects: Any = (ANA,), **fields: Any) -> dict[str, Any]:
    """Return what the model answers in pass 1."""
    return {"schema": "records_pass1", "output": {"entities": list(entities), "subjects": list(subjects)}} | fields


def coded(conditions: Any = (), medications: Any = (), **fields: Any) -> dict[str, Any]:
    """Return what the model answers in pass 2: rows by their entities' numbers, or whole."""
    output = {
        "conditions": [_row(one, name="Asthma") for one in conditions],
        "medications": [_row(one, name="Salbutamol") for one in medications],
    }
    return {"schema": "records_pass2", "output": output} | fields


def _row(one: Any, **fields: Any) -> Any:
    return fields | {"entity_no": one, "confidence": 0.75} if isinstance(one, int) else one


def narrated(narrative: str = "Asthma, treated.", sources: Any = (), **fields: Any) -> dict[str, Any]:
    """Return what the model answers in pass 3."""
    return {"schema": "records_pass3", "output": {"narrative": narrative, "sources": list(sources)}} | fields


@dataclass(frozen=True, slots=True)
class Clinic:
    """Hold what a test processes files with."""

    stage: Stage
    services: AwsServices
    s3: Any
    bucket: str

    @property
    def db(self) -> psycopg.Connection[Any]:
        return self.stage.db

    def patient(self, full_name: str = NAME, date_of_birth: str | None = BORN) -> str:
        return insert(self.db, "records", "user_profiles", full_name=full_name, date_of_birth=date_of_birth)

    def upload(self, *pages: list[str], data: bytes | None = None, **fields: Any) -> str:
        """Store a file with its object; return its id."""
        key = f"uploads/{uuid4()}"
        given = {"raw_file": key, "filename": "letter.pdf", "mime_type": "application/pdf"} | fields
        given.setdefault("patient_id", self.patient())
        body = pdf(*(pages or [PAGE])) if data is None else data
        self.s3.put_object(Bucket=self.bucket, Key=given["raw_file"], Body=body)
        return insert(self.db, "records", "shell_files", **given)

    def answers(self, *answers: dict[str, Any]) -> None:
        """Say what the model answers, in turn."""
        instruct(self.services.addresses["bedrock"], "answers", list(answers))

    def scans(self, file_id: str, text: Any) -> None:
        """Say what Textract reads in a file."""
        instruct(self.services.addresses["textract"], "texts", {self.file(file_id)["raw_file"]: text})

    def asked(self) -> list[dict[str, Any]]:
        """Return what the model was asked, in turn."""
        return [call["request"] for call in self.calls("bedrock")]

    def calls(self, service: str) -> list[dict[str, Any]]:
        return calls_of(self.services.addresses[service])

    def file(self, file_id: str) -> dict[str, Any]:
        [row] = select(self.db, "SELECT * FROM records.shell_files WHERE id = %s", file_id)
        return row

    def rows(self, table: str, order: str = "created_at, id") -> list[dict[str, Any]]:
        return select(self.db, f"SELECT * FROM records.{table} ORDER BY {order}")

    def jobs(self) -> list[dict[str, Any]]:
        return select(self.db, "SELECT * FROM signalbox.jobs ORDER BY id")

    def submit(self, file_id: str, **fields: Any) -> str:
        """Submit the file's job; return its id, which is the session's."""
        return self.stage.submit(self.job_of(file_id, **fields))

    def job_of(self, file_id: str, **fields: Any) -> NewJob:
        file = self.file(file_id)
        given = {"shell_file_id": file_id, "patient_id": str(file["patient_id"]), "raw_file": file["raw_file"]}
        return NewJob("shell_file_processing", given | fields)

    def read(self, file_id: str, **fields: Any) -> dict[str, Any]:
        """Make one attempt at the file's job; return its row."""
        return self.stage.step(self.submit(file_id, **fields))

    def processed(self, file_id: str) -> str:
        """Have the file processed, as far as it goes without waiting; return the session."""
        session = self.submit(file_id)
        self.stage.drain()
        return session

    def passed(self, session: str, number: int) -> dict[str, Any]:
        """Return the job of a session's pass."""
        key = f"pass{number}-{session}"
        [row] = select(self.db, "SELECT * FROM signalbox.jobs WHERE idempotency_key = %s", key)
        return row

    def begun(self, file_id: str, *answers: dict[str, Any], number: int = 1) -> dict[str, Any]:
        """Have a file processed up to a pass, with these answers to those before; return the pass's job."""
        self.answers(*answers)
        session = str(self.read(file_id)["id"])
        for earlier in range(1, number):
            assert self.stage.step(str(self.passed(session, earlier)["id"]))["status"] == "completed"
        return self.passed(session, number)

    def step(self, job: dict[str, Any]) -> dict[str, Any]:
        """Make one attempt at a job, as if its time had come; return its row."""
        return self.stage.step(str(job["id"]))

    def stored(self, key: str) -> Any:
        """Return an object of the bucket, as JSON."""
        return json.loads(self.s3.get_object(Bucket=self.bucket, Key=key)["Body"].read())

    def store(self, key: str, value: Any) -> None:
        self.s3.put_object(Bucket=self.bucket, Key=key, Body=json.dumps(value).encode())

    def decide(self, session: str, decision: str) -> None:
        """Have a person decide on the session, straight in the table."""
        self.db.execute(
            "UPDATE records.profile_classification_audit SET review_decision = %s, reviewed_by = 'Dr. Roy', "
            "reviewed_at = now() WHERE processing_session_id = %s",
            (decision, session),
        )
