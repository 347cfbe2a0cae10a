"""Define the pack `records`: medical records, read by OCR and by a model in three passes, with a person between."""

from __future__ import annotations

from pathlib import Path

from records.job_types import JOB_TYPES
from signalbox import Pack

PACK = Pack(
    "records",
    (),
    Path(__file__).parent / "migrations",
    JOB_TYPES,
    aliases={
        "notification_delivery": "deliver_notification",
        "data_migration": "import_table",
        "system_maintenance": "run_task",
        "audit_cleanup": "run_task",
    },
    reserved={
        "report_generation": "export_table writes rows, and the pack compliance formatted reports",
        "backup_operation": "Aurora and AWS Backup make backups, and no job",
        "semantic_processing": "no input, rule or table is given for it",
        "consent_verification": "no input, rule or table is given for it",
        "provider_verification": "no input, rule or table is given for it",
    },
)
