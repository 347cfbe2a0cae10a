"""What every bucket keeps."""

from __future__ import annotations

from collections.abc import Iterator

from tests.contract.invariants.transport import refusing_plain_http
from tests.support.template import BUCKET, Template

OPENINGS = ("BlockPublicAcls", "BlockPublicPolicy", "IgnorePublicAcls", "RestrictPublicBuckets")


def are_closed_to_the_public(template: Template) -> Iterator[str]:
    """By each of the four ways in, and by access lists, which nothing here uses."""
    for name, bucket in template.of(BUCKET).items():
        blocked = bucket.get("PublicAccessBlockConfiguration", {})
        if not all(blocked.get(opening) is True for opening in OPENINGS):
            yield f"{name}: PublicAccessBlockConfiguration leaves an opening"
        owners = [rule.get("ObjectOwnership") for rule in bucket.get("OwnershipControls", {}).get("Rules", [])]
        if owners != ["BucketOwnerEnforced"]:
            yield f"{name}: access lists are not disabled"


def refuse_plain_http(template: Template) -> Iterator[str]:
    """Keys and content would go over the wire for all to read."""
    refusing = set(refusing_plain_http(template, "AWS::S3::BucketPolicy", lambda policy: [policy["Bucket"]]))
    for name in template.of(BUCKET):
        if name not in refusing:
            yield f"{name}: no policy that refuses requests without TLS"


def forget_half_uploads(template: Template) -> Iterator[str]:
    """They are paid for, and no listing shows them."""
    for name, bucket in template.of(BUCKET).items():
        rules = bucket.get("LifecycleConfiguration", {}).get("Rules", [])
        if not any("AbortIncompleteMultipartUpload" in rule and rule["Status"] == "Enabled" for rule in rules):
            yield f"{name}: no rule with AbortIncompleteMultipartUpload"


def outlive_their_stack(template: Template) -> Iterator[str]:
    """A bucket with data in it can't be deleted, and one that is replaced loses it."""
    for name in template.of(BUCKET):
        resource = template.resources[name]
        if "Retain" not in resource.get("DeletionPolicy", "") or resource.get("UpdateReplacePolicy") != "Retain":
            yield f"{name}: DeletionPolicy and UpdateReplacePolicy do not retain it"
