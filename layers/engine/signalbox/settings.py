"""What a function reads from its environment: once, at its cold start, with all faults listed together."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from signalbox.errors import SettingsRefused

_NAME = re.compile(r"[a-z][a-z0-9_]*")
_DSN = re.compile(r"postgres(ql)?://")


@dataclass(frozen=True, slots=True)
class Settings:
    """Checked values; the field names are the variables' names without SIGNALBOX_."""

    stack: str
    database_url: str | None = field(default=None, repr=False)  # holds a password
    database_secret_arn: str | None = None
    database_host: str | None = None  # for secrets that hold only user and password
    database_port: int = 5432
    database_name: str = "postgres"
    ca_bundle: str | None = None
    packs: tuple[str, ...] = ()
    disabled_tasks: frozenset[str] = frozenset()
    max_continuations: int = 100  # of one slot, so that a task that never ends is seen
    budget_margin_seconds: int = 10  # kept back from Lambda's time for the ledger and the answer
    lease_margin_seconds: int = 30  # a lease outlives the function's time by this

    @staticmethod
    def read(environ: Mapping[str, str]) -> Settings:
        """The settings, or one error that lists every fault."""
        reader = _Reader({name: value.strip() for name, value in environ.items() if value.strip()})
        settings = Settings(
            stack=reader.text("STACK") or reader.miss("SIGNALBOX_STACK is not set: it holds the stack's name"),
            database_url=reader.matching("DATABASE_URL", _DSN, "a postgresql:// URL"),
            database_secret_arn=reader.text("DATABASE_SECRET_ARN"),
            database_host=reader.text("DATABASE_HOST"),
            database_port=reader.number("DATABASE_PORT", 5432, 1, 65535),
            database_name=reader.text("DATABASE_NAME") or "postgres",
            ca_bundle=reader.file("CA_BUNDLE"),
            packs=reader.names("PACKS"),
            disabled_tasks=frozenset(reader.names("DISABLED_TASKS")),
            max_continuations=reader.number("MAX_CONTINUATIONS", 100, 0, 10_000),
            budget_margin_seconds=reader.number("BUDGET_MARGIN_SECONDS", 10, 0, 300),
            lease_margin_seconds=reader.number("LEASE_MARGIN_SECONDS", 30, 1, 3600),
        )
        if not (settings.database_url or settings.database_secret_arn or reader.faults_of("DATABASE_URL")):
            reader.miss(
                "neither SIGNALBOX_DATABASE_SECRET_ARN nor SIGNALBOX_DATABASE_URL is set: one names the database"
            )
        if reader.faults:
            raise SettingsRefused("the function's environment is wrong: " + "; ".join(reader.faults))
        return settings


class _Reader:
    """Reads one variable after the other and collects what is wrong with them."""

    def __init__(self, environ: Mapping[str, str]) -> None:
        self.environ = environ
        self.faults: list[str] = []

    def miss(self, fault: str) -> str:
        self.faults.append(fault)
        return ""

    def faults_of(self, name: str) -> bool:
        return any(fault.startswith(f"SIGNALBOX_{name} ") for fault in self.faults)

    def text(self, name: str) -> str | None:
        return self.environ.get(f"SIGNALBOX_{name}")

    def matching(self, name: str, pattern: re.Pattern[str], what: str) -> str | None:
        value = self.text(name)
        if value is not None and not pattern.match(value):
            self.miss(f"SIGNALBOX_{name} is not {what}")
        return value

    def number(self, name: str, default: int, least: int, most: int) -> int:
        value = self.text(name)
        if value is None:
            return default
        if not (value.isascii() and value.isdigit() and least <= int(value) <= most):
            self.miss(f"SIGNALBOX_{name} is '{value}', not a whole number from {least} to {most}")
            return default
        return int(value)

    def file(self, name: str) -> str | None:
        value = self.text(name)
        if value is not None and not Path(value).is_file():
            self.miss(f"SIGNALBOX_{name} names '{value}', where there is no file")
        return value

    def names(self, name: str) -> tuple[str, ...]:
        values = [value.strip() for value in (self.text(name) or "").split(",")]
        for value in values:
            if value and not _NAME.fullmatch(value):
                self.miss(f"SIGNALBOX_{name} holds '{value}', which is no name: lower case, digits and _ only")
        return tuple(value for value in values if value)
