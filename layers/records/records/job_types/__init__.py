"""List the pack's job types: one reads an uploaded file, the other asks a model about it in three passes.

Neither is transactional: they call S3, Textract and Bedrock first, and then write in one transaction of their own.
"""

from __future__ import annotations

from datetime import timedelta

from signalbox import JobType, Lane, RetryPolicy
from signalbox.packs.job_type import Route

_MINUTES = timedelta(minutes=1)
_RETRY = RetryPolicy(max_attempts=4, base=5 * _MINUTES, cap=5 * _MINUTES, jitter="twenty_percent")
# The names that outsiders know for lanes.
FILE_LANES = {"fast_queue": Lane.HIGH, "standard_queue": Lane.NORMAL}
AI_LANES = {"ai_queue_simple": Lane.NORMAL, "ai_queue_complex": Lane.HEAVY}

JOB_TYPES: tuple[JobType, ...] = (
    JobType(
        "shell_file_processing",
        "reads the text of an uploaded file, and begins its first pass",
        "records.intake.shell_file_processing",
        route=Route("job_lane", FILE_LANES),
        retry=_RETRY,
        side_by_side=2,  # a PDF of 50 MiB is read in memory
        subject="patient_id",
        correlation="shell_file_id",
        tags={"session": "id"},
        job_name="Shell file {shell_file_id}",
    ),
    JobType(
        "ai_processing",
        "asks a model about a file: its entities, then what they mean, then a narrative",
        "records.passes.ai_processing",
        route=Route("job_lane", AI_LANES, {"ai_queue_complex": 14 * _MINUTES}),
        retry=_RETRY,
        side_by_side=50,  # it only waits
        subject="patient_id",
        correlation="shell_file_id",
        tags={"session": "processing_session_id", "narrative": "narrative_id"},
        job_name="Pass {pass_number}: {shell_file_id}",
        pieces_at_most=timedelta(days=40),  # a review may take 30
    ),
)
