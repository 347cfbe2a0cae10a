"""List the pack's job types.

Those of a company are transactional, and lock its row; they need nothing but the database. The others call S3,
Textract, Bedrock or SES first, and then write in one transaction of their own.
"""

from __future__ import annotations

from datetime import timedelta

from signalbox import JobType, Lane, RetryPolicy

_SECONDS = timedelta(seconds=1)
_RETRY = RetryPolicy(max_attempts=3, base=2 * _SECONDS, jitter="twenty_percent")
_RETRY_ONCE = RetryPolicy(max_attempts=2, base=2 * _SECONDS, jitter="twenty_percent")

JOB_TYPES: tuple[JobType, ...] = (
    JobType(
        "monitoring_schedule",
        "calculates when a company's obligations are due, and their statuses",
        "compliance.obligations.monitoring_schedule",
        transactional=True,
        retry=_RETRY,
        lane=Lane.NORMAL,
        subject="company_id",
    ),
    JobType(
        "deadline_alert",
        "warns of deadlines that come near or have passed",
        "compliance.obligations.deadline_alert",
        transactional=True,
        retry=_RETRY,
        lane=Lane.HIGH,
        timeout=120 * _SECONDS,
        subject="company_id",
        severity="critical",
    ),
    JobType(
        "evidence_reminder",
        "reminds of obligations that are due soon and have no evidence",
        "compliance.obligations.evidence_reminder",
        transactional=True,
        retry=_RETRY,
        lane=Lane.HIGH,
        timeout=120 * _SECONDS,
        subject="company_id",
    ),
    JobType(
        "sampling_schedule",
        "calculates when samples are due, and reminds of them",
        "compliance.permits.sampling_schedule",
        transactional=True,
        retry=_RETRY,
        lane=Lane.NORMAL,
        subject="company_id",
    ),
    JobType(
        "run_hour_monitoring",
        "compares generators' hours with their limits",
        "compliance.permits.run_hour_monitoring",
        transactional=True,
        retry=_RETRY,
        lane=Lane.NORMAL,
        subject="company_id",
    ),
    JobType(
        "permit_renewal_reminder",
        "reminds of permits that expire",
        "compliance.permits.permit_renewal_reminder",
        transactional=True,
        retry=_RETRY,
        lane=Lane.NORMAL,
        subject="company_id",
    ),
    JobType(
        "cross_sell_trigger_detection",
        "finds words in permits that suggest another module",
        "compliance.permits.cross_sell_trigger_detection",
        transactional=True,
        retry=_RETRY,
        lane=Lane.LOW,
        subject="company_id",
        severity="info",
    ),
    JobType(
        "consultant_client_sync",
        "checks a consultant's clients, and sums up their compliance",
        "compliance.consultants.consultant_client_sync",
        transactional=True,
        retry=_RETRY_ONCE,
        lane=Lane.LOW,
        pieces_at_most=600 * _SECONDS,
        subject="consultant_id",
    ),
    JobType(
        "document_processing",
        "reads a permit and extracts its obligations",
        "compliance.documents.document_processing",
        retry=_RETRY,
        lane=Lane.HEAVY,
        timeout=360 * _SECONDS,
        subject="document_id",
        on_dead_letter="compliance.document_failed",
    ),
    JobType(
        "excel_import_processing",
        "checks a spreadsheet of obligations, and creates them",
        "compliance.imports.excel_import_processing",
        retry=_RETRY,
        lane=Lane.HEAVY,
        subject="import_id",
        on_dead_letter="compliance.import_failed",
    ),
    JobType(
        "aer_generation",
        "writes the annual emissions report of a permit",
        "compliance.reports.aer_generation",
        retry=_RETRY,
        lane=Lane.HEAVY,
        timeout=600 * _SECONDS,
        subject="document_id",
        correlation="company_id",
    ),
    JobType(
        "audit_pack_generation",
        "writes a pack of evidence",
        "compliance.reports.audit_pack_generation",
        retry=_RETRY,
        lane=Lane.HEAVY,
        timeout=600 * _SECONDS,
        subject="company_id",
    ),
    JobType(
        "pack_distribution",
        "sends a pack of evidence to its recipients",
        "compliance.sharing.pack_distribution",
        retry=_RETRY,
        lane=Lane.NORMAL,
        subject="pack_id",
    ),
    JobType(
        "deliver_pack",
        "sends a pack of evidence to one recipient",
        "compliance.sharing.deliver_pack",
        side_by_side=1,  # a mail of 40 MB takes a quarter of a gigabyte
        retry=_RETRY,
        lane=Lane.NORMAL,
        timeout=120 * _SECONDS,
        subject="distribution_id",
        on_dead_letter="compliance.delivery_failed",
    ),
)
