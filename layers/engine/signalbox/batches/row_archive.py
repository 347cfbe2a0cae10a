"""Keep rows that are about to be pruned in S3, for stacks that must keep them: one object of JSON lines a batch.

The compressed object is written before the deletion of its rows commits. After a crash in between, the next run
archives the rows again: a row may be in two objects, and is never in none.
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
