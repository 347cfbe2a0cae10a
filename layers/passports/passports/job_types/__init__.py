"""List the pack's job types. Each submits the next one, from an uploaded document to a signed passport."""

from __future__ import annotations

from datetime import timedelta

from signalbox import JobType, Lane, RetryPolicy

_SECONDS = timedelta(seconds=1)
_RETRY = RetryPolicy(max_attempts=5, base=2 * _SECONDS, cap=1024 * _SECONDS, jitter="twenty_percent")

JOB_TYPES: tuple[JobType, ...] = (
    JobType(
        "ingest_document",
        "reads an uploaded file, by its text or by Textract",
        "passports.facts.ingest_document",
        retry=_RETRY,
        subject="document_id",
    ),
    JobType(
        "parse_facts",
        "reads the facts of a document",
        "passports.facts.parse_facts",
        transactional=True,
        retry=_RETRY,
        timeout=60 * _SECONDS,
        subject="document_version_id",
    ),
    JobType(
        "build_snapshot",
        "makes a snapshot of facts ready to be sealed",
        "passports.facts.build_snapshot",
        transactional=True,
        retry=_RETRY,
        timeout=30 * _SECONDS,
        subject="snapshot_id",
    ),
    JobType(
        "compile_passport",
        "compiles a passport from a sealed snapshot by published rules",
        "passports.issuing.compile_passport",
        transactional=True,
        retry=_RETRY,
        timeout=60 * _SECONDS,
        subject="passport_id",
    ),
    JobType(
        "sign_passport",
        "signs a passport",
        "passports.issuing.sign_passport",
        transactional=True,
        retry=_RETRY,
        timeout=30 * _SECONDS,
        category="critical",
        severity="critical",
        subject="passport_version_id",
    ),
    JobType(
        "generate_qr",
        "draws the QR code of a passport",
        "passports.issuing.generate_qr",
        transactional=True,
        retry=_RETRY,
        timeout=30 * _SECONDS,
        subject="passport_version_id",
    ),
    JobType(
        "export_passport",
        "writes a passport as PDF, JSON-LD or XML",
        "passports.issuing.export_passport",
        retry=_RETRY,
        timeout=120 * _SECONDS,
        subject="passport_version_id",
    ),
    JobType(
        "run_rule_tests",
        "runs the tests of a package of rules",
        "passports.rules.run_rule_tests",
        retry=_RETRY,
        lane=Lane.HEAVY,
        timeout=840 * _SECONDS,
        side_by_side=1,  # it computes
        subject="rule_package_version_id",
    ),
    JobType(
        "deliver_passport_webhook",
        "delivers an event of a passport as a signed webhook",
        "passports.webhooks.deliver_passport_webhook",
        retry=_RETRY,
        timeout=45 * _SECONDS,
        side_by_side=50,  # it only waits
        subject="webhook_delivery_id",
    ),
)
