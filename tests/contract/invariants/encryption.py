"""What every stack keeps of encryption: one key of its own for all that it stores, used through services alone."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from tests.support.template import (
    BUCKET,
    FUNCTION,
    LOG_GROUP,
    QUEUE,
    SECRET_KIND,
    TOPIC_KIND,
    Template,
    listed,
    referred,
)

KEY = "AWS::KMS::Key"
# Where each kind of resource names its key.
NAMED_BY: Mapping[str, str] = {
    "AWS::RDS::DBCluster": "KmsKeyId",
    "AWS::RDS::DBInstance": "PerformanceInsightsKMSKeyId",
    FUNCTION: "KmsKeyArn",
    LOG_GROUP: "KmsKeyId",
    QUEUE: "KmsMasterKeyId",
    SECRET_KIND: "KmsKeyId",
    TOPIC_KIND: "KmsMasterKeyId",
}
USES = {"kms:Decrypt", "kms:Encrypt", "kms:GenerateDataKey", "kms:ReEncryptFrom", "kms:CreateGrant"}


def is_by_a_key_of_the_stack(template: Template) -> Iterator[str]:
    """AWS's own keys are for the whole account, and nobody can say who may use them."""
    for kind, named_by in NAMED_BY.items():
        for name, properties in template.of(kind).items():
            if referred(properties.get(named_by)) not in template.of(KEY):
                yield f"{name}: {named_by} is no key of this template"
    for name, bucket in template.of(BUCKET).items():
        default = _default_encryption(bucket)
        if referred(default.get("ServerSideEncryptionByDefault", {}).get("KMSMasterKeyID")) not in template.of(KEY):
            yield f"{name}: not encrypted by a key of this template"
        elif default.get("BucketKeyEnabled") is not True:
            yield f"{name}: each object asks KMS, since BucketKeyEnabled is not set"


def has_keys_that_rotate_and_stay(template: Template) -> Iterator[str]:
    """What a deleted key has encrypted is lost, and buckets and snapshots outlive their stack."""
    for name, key in template.of(KEY).items():
        resource = template.resources[name]
        if key.get("EnableKeyRotation") is not True:
            yield f"{name}: does not rotate"
        if "Retain" not in resource.get("DeletionPolicy", "") or resource.get("UpdateReplacePolicy") != "Retain":
            yield f"{name}: DeletionPolicy and UpdateReplacePolicy do not retain it"


def has_keys_that_are_used_through_services(template: Template) -> Iterator[str]:
    """Who may use a key on its own may read whatever it has encrypted, wherever he finds it."""
    for name, key in template.of(KEY).items():
        for statement in key["KeyPolicy"]["Statement"]:
            if any("*" in action for action in listed(statement["Action"])):
                yield f"{name}: its policy allows {statement['Action']}"
            elif USES & set(listed(statement["Action"])) and not _is_bounded(statement):
                yield f"{name}: its policy lets {statement['Principal']} use it without a condition"


def _is_bounded(statement: Mapping[str, Any]) -> bool:
    """The account by the services it goes through, a service by what it encrypts: of the calls of EventBridge to KMS no
    source is known, so that a condition on it would refuse them all."""
    keys = {key for test in statement.get("Condition", {}).values() for key in test}
    if "Service" in statement["Principal"]:
        return any(key.startswith("kms:EncryptionContext:") for key in keys)
    return "kms:ViaService" in keys


def _default_encryption(bucket: Mapping[str, Any]) -> dict[str, Any]:
    rules = bucket.get("BucketEncryption", {}).get("ServerSideEncryptionConfiguration", [])
    return rules[0] if len(rules) == 1 else {}
