"""What is of a session is there once."""

from __future__ import annotations

import pytest
from psycopg.errors import UniqueViolation

from tests.support.clinic import ASTHMA, SALBUTAMOL, Clinic, coded, found, narrated

TABLES = (
    "pass1_entity_metrics",
    "profile_classification_audit",
    "patient_conditions",
    "patient_medications",
    "clinical_narratives",
)


def test_rows_of_a_session_are_unique(clinic: Clinic) -> None:
    clinic.answers(found(ASTHMA, SALBUTAMOL), coded([1], [2]), narrated())
    clinic.processed(clinic.upload())
    for table in TABLES:
        with pytest.raises(UniqueViolation):
            clinic.db.execute(
                f"INSERT INTO records.{table} SELECT (jsonb_populate_record("
                f"NULL::records.{table}, to_jsonb(t) || jsonb_build_object('id', gen_random_uuid()))).* "
                f"FROM records.{table} AS t"
            )
