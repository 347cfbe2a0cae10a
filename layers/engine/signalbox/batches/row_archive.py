"""Rows that are about to be pruned, kept in S3 for those who must keep them: a compressed object of JSON lines a batch.

An object is written before the deletion of its rows commits. A crash in between leaves the rows, which the next run
archives once more: a row may stand in two objects, and is never in none.
"""

from __future__ import annotations

import gzip
from collections.abc import Sequence

from signalbox.ledger.context import Context


def store(context: Context, table: str, first: str, lines: Sequence[str]) -> None:
    """Write the rows of a batch, named by the first of them; do nothing in a stack without an archive."""
    bucket = context.settings.archive_bucket
    if bucket is None or not lines:
        return
    key = f"{context.settings.stack}/{table}/{context.now:%Y/%m/%d}/{first}.jsonl.gz"
    body = gzip.compress("".join(f"{line}\n" for line in lines).encode(), mtime=0)
    context.clients.s3.put_object(Bucket=bucket, Key=key, Body=body, ContentType="application/x-ndjson")
