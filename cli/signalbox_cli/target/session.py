"""Sessions with AWS for a stack that is there, by the person's own configuration, and how long calls may take. The
laptop's stack has a session of its own, which no profile or key of theirs may reach.
"""

from __future__ import annotations

import os

import boto3
from botocore.config import Config

# The longest that a function may run, and a little.
_LONGEST_INVOCATION_SECONDS = 905
CONFIG = Config(connect_timeout=5, read_timeout=60, retries={"mode": "standard", "total_max_attempts": 3})
# Never sent twice: whoever invokes a task by hand means one run.
INVOKE_CONFIG = Config(
    connect_timeout=5,
    read_timeout=_LONGEST_INVOCATION_SECONDS,
    retries={"total_max_attempts": 1},
    tcp_keepalive=True,
)


def on_aws() -> boto3.Session:
    """As the AWS command line would; AWS_REGION counts, too, which boto3 alone does not read."""
    return boto3.Session(region_name=os.environ.get("AWS_REGION"))
