"""Make permits as PDF, say what a model answers about them, and have them read."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from signalbox.testing import rows as engine_rows
from signalbox.testing.stage import Stage
from signalbox_laptop.stand_ins.aws_services import AwsServices
from tests.support.compliance_rows import Workforce, add, rows
from tests.support.pdfs import pdf
from tests.support.stand_ins import calls_of, instruct

MONITOR = "1.1 The operator shall monitor emissions monthly."
REPORT = "1.2 The operator shall report to the regulator every year."
KEEP = "1.3 The operator shall keep records."


def said(text: str, **fields: Any) -> dict[str, Any]:
    """Return one obligation as a model records it."""
    return {
        "text": text,
        "summary": "Do it",
        "category": "MONITORING",
        "condition_type": "EMISSION",
        "condition_reference": "1.1",
        "frequency": "MONTHLY",
        "confidence_score": 0.95,
        "is_subjective": False,
        "subjective_phrases": [],
    } | fields


def answer(*obligations: Any, **fields: Any) -> dict[str, Any]:
    """Return an instruction for the stand-in of Bedrock."""
    return {"schema": "record_obligations", "output": {"obligations": list(obligations)}} | fields


@dataclass(frozen=True, slots=True)
class Desk:
    """Hold what a test reads permits with."""

    stage: Stage
    people: Workforce
    services: AwsServices
    s3: Any
    bucket: str

    def upload(self, *pages: list[str], **fields: Any) -> str:
        """Store a document with its file; return its id."""
        module = add(self.people.db, "modules", module_code=fields.pop("module_code", "MODULE_1"))
        defaults = {"module_id": module, "uploaded_by": self.people.owner_id, "document_type": "PERMIT"}
        document_id = self.people.document(**defaults | fields)
        if pages:
            self.s3.put_object(Bucket=self.bucket, Key=self.key(document_id), Body=pdf(*pages))
        return document_id

    def key(self, document_id: str, name: str = "original.pdf") -> str:
        return f"documents/{self.people.company_id}/{self.people.site_id}/{document_id}/{name}"

    def told(self, *answers: dict[str, Any]) -> None:
        instruct(self.services.addresses["bedrock"], "answers", list(answers))

    def scans(self, **texts: Any) -> None:
        instruct(self.services.addresses["textract"], "texts", {self.key(id_): text for id_, text in texts.items()})

    def asked(self) -> list[str]:
        """Return the texts that the model was asked about."""
        calls = calls_of(self.services.addresses["bedrock"])
        texts = [call["request"]["messages"][0]["content"][0]["text"] for call in calls]
        return [text.split("<document>\n")[1].removesuffix("\n</document>") for text in texts]

    def submit(self, document_id: str, **fields: Any) -> str:
        return self.stage.submit("document_processing", payload={"document_id": document_id, **fields})

    def read(self, document_id: str, **fields: Any) -> dict[str, Any]:
        return self.stage.finish(self.submit(document_id, **fields))

    def live(self) -> list[str]:
        statement = "SELECT original_text FROM compliance.obligations WHERE deleted_at IS NULL ORDER BY original_text"
        return [row["original_text"] for row in engine_rows.select(self.people.db, statement)]

    def items(self) -> list[str]:
        return [row[0] for row in rows(self.people.db, "review_queue_items", "review_type")]

    def status(self, document_id: str) -> tuple[str, str | None]:
        statement = "SELECT extraction_status, error_message FROM compliance.documents WHERE id = %s"
        [row] = engine_rows.select(self.people.db, statement, document_id)
        return row["extraction_status"], row["error_message"]
