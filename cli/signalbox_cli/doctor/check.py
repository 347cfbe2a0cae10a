"""Define a finding of `signalbox doctor`: what was checked, the verdict, and what to do if it is not well."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal

from signalbox_cli.explain import explain

Verdict = Literal["ok", "warn", "fail"]


@dataclass(frozen=True, slots=True)
class Finding:
    """Describe the outcome of a check."""

    check: str
    verdict: Verdict
    detail: str
    advice: str = ""


def ok(check: str, detail: str) -> Finding:
    return Finding(check, "ok", detail)


def warn(check: str, detail: str, advice: str) -> Finding:
    return Finding(check, "warn", detail, advice)


def fail(check: str, detail: str, advice: str) -> Finding:
    return Finding(check, "fail", detail, advice)


def examined(check: str, look: Callable[[], list[Finding]]) -> list[Finding]:
    """Return the check's findings; an error that prevents the check is a finding, too."""
    try:
        return look()
    except Exception as error:
        detail, _, advice = explain(error).partition("; ")
        return [fail(check, detail, advice or "`signalbox logs --since 10m` shows what the functions said")]
