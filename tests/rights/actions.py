"""Map a client's methods to IAM's actions: the operation's name by botocore's models, but for exceptions.

Actions are told apart by what they are allowed on: a queue or a topic, a bucket or the objects in it.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache

import botocore.session
from botocore import xform_name

PREFIXES = {"sesv2": "ses"}  # where it is not the client's name
# {operation: actions}; the rest is called as its operation is.
DIFFERENT: Mapping[str, tuple[str, ...]] = {
    "lambda:Invoke": ("lambda:InvokeFunction",),
    "sqs:ChangeMessageVisibilityBatch": ("sqs:ChangeMessageVisibility",),
    "sqs:SendMessageBatch": ("sqs:SendMessage",),
    # S3 says of what is not there that it is forbidden, to those who may not list.
    "s3:HeadObject": ("s3:GetObject", "s3:ListBucket"),
    "s3:GetObject": ("s3:GetObject",),
    "s3:ListObjectVersions": ("s3:ListBucketVersions",),
    "s3:DeleteObjects": ("s3:DeleteObject", "s3:DeleteObjectVersion"),
    "s3:CreateMultipartUpload": ("s3:PutObject", "s3:PutObjectTagging"),  # export_table, which may tag
    "s3:UploadPart": ("s3:PutObject",),
    "bedrock-runtime:Converse": ("bedrock:InvokeModel",),
    "s3:CompleteMultipartUpload": ("s3:PutObject",),
}
ON_BUCKETS = {"s3:ListBucket", "s3:ListBucketVersions"}
# What a key must be good for where the thing is encrypted with one.
ENCRYPTS = {"sqs:SendMessage", "sns:Publish", "s3:PutObject"}
DECRYPTS = {"sqs:SendMessage", "sns:Publish", "sqs:ReceiveMessage", "s3:GetObject", "secretsmanager:GetSecretValue"}
IN_PARTS = {"create_multipart_upload", "upload_part"}  # S3 puts them together, and reads them for that


def actions_of(service: str, method: str) -> tuple[str, ...]:
    """Return a method's actions; raise KeyError for a paginator, a waiter or a transfer."""
    operation = f"{service}:{_operations(service)[method]}"
    return DIFFERENT.get(operation, (f"{PREFIXES.get(service, service)}:{operation.partition(':')[2]}",))


def keys_for(action: str, method: str) -> set[str]:
    """Return the actions of KMS that go with an action."""
    found = {"kms:GenerateDataKey"} if action in ENCRYPTS else set()
    return found | ({"kms:Decrypt"} if action in DECRYPTS or method in IN_PARTS else set())


@cache
def _operations(service: str) -> Mapping[str, str]:
    model = botocore.session.get_session().get_service_model(service)
    return {xform_name(name): name for name in model.operation_names}
