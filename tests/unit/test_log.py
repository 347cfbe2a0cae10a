"""The log has the stack's own level, whatever Lambda's is."""

from __future__ import annotations

import json

import pytest

from signalbox.runtime.log import make_logger


@pytest.mark.parametrize(("level", "kept"), [("ERROR", {"e"}), ("WARN", {"w", "e"}), ("INFO", {"i", "w", "e"})])
def test_the_log_keeps_what_the_stack_says_though_lambda_would_keep_more(
    level: str, kept: set[str], monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("AWS_LAMBDA_LOG_LEVEL", "INFO")
    monkeypatch.setenv("POWERTOOLS_LOG_LEVEL", level)
    log = make_logger(f"stack-{level}")
    log.info("i")
    log.warning("w")
    log.error("e")
    assert {json.loads(line)["message"] for line in capsys.readouterr().out.splitlines()} == kept
