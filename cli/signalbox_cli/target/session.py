"""Make sessions with AWS by the person's own configuration, and limit how long calls may take.

The laptop's stack has a session of its own: no profile or key of theirs may affect it.
"""

from __future__ import annotations

import os

import boto3
from botocore.config import Config

# The longest that a function may run, and a little more.
_LONGEST_INVOCATION_SECONDS = 905
CONFIG = Config(connect_timeout=5, read_timeout=60, retries={"mode": "standard", "total_max_attempts": 3})
# Never sent twice: a person who invokes a task by hand wants one run.
INVOKE_CONFIG = Config(
    connect_timeout=5,
    read_timeout=_LONGEST_INVOCATION_SECONDS,
    retries={"total_max_attempts": 1},
    tcp_keepalive=True,
)


def on_aws() -> boto3.Session:
    """Make a session as the AWS command line would; also read AWS_REGION, which boto3 alone ignores."""
    return boto3.Session(region_name=os.environ.get("AWS_REGION"))
