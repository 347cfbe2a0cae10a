"""Reach the pack's bucket. The keys of its objects are the paths that the product's tables hold."""

from __future__ import annotations

from compliance.settings import ComplianceSettings
from signalbox import JobContext
from signalbox.aws.bucket import Bucket


def files_of(context: JobContext) -> Bucket:
    return Bucket(context.clients.s3, context.resources.settings_of(ComplianceSettings).bucket)
