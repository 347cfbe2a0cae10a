"""Doctor judges a function by what Lambda reports."""

from __future__ import annotations

from typing import Any

import pytest

from signalbox_cli.doctor.deployment import judge_function

VARIABLES = {"SIGNALBOX_STACK": "signalbox", "SIGNALBOX_DATABASE_SECRET_ARN": "arn"}
FOUND: dict[str, Any] = {
    "Runtime": "python3.13",
    "Timeout": 300,
    "MemorySize": 512,
    "Layers": [{"Arn": "one"}],
    "Environment": {"Variables": VARIABLES},
}
HIDDEN = {"Error": {"ErrorCode": "AccessDeniedException", "Message": "kms:Decrypt"}}


@pytest.mark.parametrize(
    ("altered", "verdict", "said"),
    [
        ({}, "ok", "1 layers"),
        ({"Environment": HIDDEN}, "warn", "you may not see"),
        ({"Environment": {"Variables": {}}}, "fail", "has no SIGNALBOX_STACK"),
        ({"Environment": {"Variables": VARIABLES | {"SIGNALBOX_STACK": "other"}}}, "fail", "its stack is other"),
        ({"Environment": HIDDEN, "Layers": []}, "fail", "has no layers"),
        ({"State": "Failed", "StateReason": "no key"}, "fail", "is Failed: no key"),
    ],
)
def test_a_function_is_judged_by_what_can_be_seen_of_it(altered: dict[str, Any], verdict: str, said: str) -> None:
    found: Any = FOUND | altered
    finding = judge_function(found, "signalbox", "function archiver", "signalbox-archiver")
    assert finding.verdict == verdict
    assert said in finding.detail
