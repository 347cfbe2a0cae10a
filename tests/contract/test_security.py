"""Existing tests prove SECURITY.md's promises, and each ignored finding has a reason."""

from __future__ import annotations

import ast
import re
from typing import Any

import pytest
import yaml

from checks import scan
from signalbox_laptop.deploy.template import read_template
from tests.support.template import ROOT

PROMISES = (ROOT / "SECURITY.md").read_text("utf-8")
NAMED = re.findall(r"`(tests/[\w/]+\.py)::(\w+)`", PROMISES)


@pytest.mark.parametrize(("path", "name"), NAMED, ids=lambda part: part)
def test_a_test_that_security_md_names_exists(path: str, name: str) -> None:
    tree = ast.parse((ROOT / path).read_text("utf-8"))
    assert name in {node.name for node in tree.body if isinstance(node, ast.FunctionDef)}


def test_each_promise_names_a_test() -> None:
    table = [line for line in PROMISES.splitlines() if line.startswith("| ")][2:]
    assert len(table) > 10
    assert [line for line in table if not re.search(r"`tests/[\w/]+\.py::\w+` ?\|?", line)] == []


def test_each_exception_from_checkov_has_a_reason() -> None:
    skipped = [
        (name, skip)
        for path in scan.TEMPLATES
        for name, resource in read_template(path)["Resources"].items()
        for skip in resource.get("Metadata", {}).get("checkov", {}).get("skip", [])
    ]
    assert skipped
    assert [name for name, skip in skipped if not re.fullmatch(r"CKV2?_\w+_\d+", skip["id"])] == []
    assert [name for name, skip in skipped if len(skip.get("comment", "").split()) < 5] == []


def test_checkov_skips_no_check_globally_and_sends_nothing() -> None:
    config = yaml.safe_load((ROOT / "checks" / "checkov.yaml").read_text("utf-8"))
    assert config["skip-download"] is True
    assert config["download-external-modules"] is False
    assert not {"skip-check", "soft-fail", "check", "baseline", "bc-api-key"} & set(config)


@pytest.mark.parametrize(
    "told",
    [
        {"passed": 0, "failed": 0, "skipped": 0},
        {"summary": {"passed": 0, "parsing_errors": 1}, "results": {}},
        {"summary": {"passed": 9, "parsing_errors": 1}, "results": {}},
    ],
)
def test_a_template_that_checkov_has_not_read_is_a_finding(told: dict[str, Any]) -> None:
    assert list(scan.judge(told)) == ["checkov has not read the template"]


def test_what_fails_is_named() -> None:
    failed = {"check_id": "CKV_AWS_1", "resource": "AWS::SQS::Queue.One", "check_name": "Encrypt it"}
    told = {"summary": {"passed": 9, "parsing_errors": 0}, "results": {"failed_checks": [failed]}}
    assert list(scan.judge(told)) == ["CKV_AWS_1: AWS::SQS::Queue.One: Encrypt it"]
