"""Make clients for AWS's stand-in on the laptop: always its endpoint, its region and made-up keys.

They read nothing of the person's own AWS configuration, so that no profile, proxy or key of theirs reaches the laptop's
stack or is reached by it.
"""

from __future__ import annotations

import os
import threading
from functools import cache
from typing import Any

import boto3
import botocore.session
from botocore.config import Config

REGION = "us-east-1"
ACCOUNT = "123456789012"  # moto's
# Moto accepts any; function processes get these, too.
CREDENTIALS = {"AWS_ACCESS_KEY_ID": "laptop", "AWS_SECRET_ACCESS_KEY": "laptop", "AWS_SESSION_TOKEN": "laptop"}

_CONFIG = Config(
    connect_timeout=5,
    read_timeout=60,
    retries={"total_max_attempts": 2},
    proxies={},
    s3={"addressing_style": "path"},
)
# Two threads must not use a session at once; they may share the clients that it makes.
_MAKING = threading.Lock()


def client(service: str, endpoint: str) -> Any:
    """Return a client of one service. The caller declares its type."""
    make: Any = session().client
    with _MAKING:
        return make(service, endpoint_url=endpoint, config=_CONFIG)


@cache
def session() -> boto3.Session:
    """Return a session that clients are made from."""
    unread = {
        # An AWS_PROFILE that is missing in these empty files would make every client fail.
        "profile": (None, None, None, None),
        "config_file": (None, None, os.devnull, None),
        "credentials_file": (None, None, os.devnull, None),
    }
    return boto3.Session(
        aws_access_key_id=CREDENTIALS["AWS_ACCESS_KEY_ID"],
        aws_secret_access_key=CREDENTIALS["AWS_SECRET_ACCESS_KEY"],
        aws_session_token=CREDENTIALS["AWS_SESSION_TOKEN"],
        region_name=REGION,
        botocore_session=botocore.session.Session(session_vars=unread),
    )
