"""What a function reads from its environment: once, at its cold start, with all faults listed together."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from ipaddress import IPv4Network, IPv6Network, ip_network
from pathlib import Path

from signalbox.errors import SettingsRefused

_NAME = re.compile(r"[a-z][a-z0-9_]*")
_DSN = re.compile(r"postgres(ql)?://")
_HOST = re.compile(r"([\w.%-]+|\[[0-9A-Fa-f:.]+\])(:[0-9]{1,5})?(/[^\s/?]+)?$")
_PORT = re.compile(r"[0-9]{1,5}")
_TABLE = re.compile(r"[a-z_][a-z0-9_]*\.([a-z_][a-z0-9_]*|\*)")
_BUCKET = re.compile(r"[a-z0-9][a-z0-9.-]{1,61}[a-z0-9]")
_TOPIC = re.compile(r"arn:[^:]+:sns:[^:]+:\d{12}:[\w-]+(\.fifo)?$")


@dataclass(frozen=True, slots=True)
class FileTransfers:
    """What import_table and export_table may use beside the stack's own bucket."""

    import_tables: tuple[str, ...] = ()  # schema.table, or schema.*
    export_tables: tuple[str, ...] = ()  # of tables and views
    buckets: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Settings:
    """Checked values; the field names are the variables' names without SIGNALBOX_."""

    stack: str
    database_url: str | None = field(default=None, repr=False)  # holds a password
    database_secret_arn: str | None = None
    reader_url: str | None = field(default=None, repr=False)
    reader_secret_arn: str | None = None  # of the log-in for what only reads; None: the one log-in does that, too
    writer_login_secret_arn: str | None = None  # of the log-ins that the migrator is to make
    reader_login_secret_arn: str | None = None
    database_host: str | None = None  # host[:port][/name], for secrets that hold only user and password
    ca_bundle: str | None = None
    database_error_details: bool = False  # whether its errors are kept and logged with what they quote of rows
    packs: tuple[str, ...] = ()
    disabled_tasks: frozenset[str] = frozenset()
    event_bus: str | None = None  # where each change of a job's status is published; None: nowhere
    job_events: str = "all"  # or "ends": only what becomes of a job for good, a third of the events or less
    operators_topic_arn: str | None = None  # of SNS, told of new dead letters
    notifications_topic_arn: str | None = None  # of SNS, for jobs that notify people
    sender_address: str | None = None  # that their mail comes from
    jobs_bucket: str | None = None  # of the files that jobs read and write
    file_transfers: FileTransfers = FileTransfers()
    webhook_allow_http: bool = False  # for receivers on the laptop and in tests
    webhook_ports: tuple[range, ...] = (range(443, 444), range(8443, 8444))
    webhook_allowed_networks: tuple[IPv4Network | IPv6Network, ...] = ()  # beside the public internet
    webhook_refused_networks: tuple[IPv4Network | IPv6Network, ...] = ()  # in spite of everything: our own public ones
    job_retention_days: int = 30  # of jobs that have completed or were cancelled
    execution_retention_days: int = 30  # of the attempts of jobs that are kept for longer
    dead_letter_retention_days: int = 30  # of the closed ones; then they go to the audit log
    notification_retention_days: int = 90  # of what people were told in the application, read or not
    audit_retention_days: int = 365  # of what operators did, and of archived dead letters
    archive_bucket: str | None = None  # to which jobs, attempts and audit rows go before they are pruned
    max_continuations: int = 100  # of one slot, so that a task that never ends is seen
    budget_margin_seconds: int = 10  # kept back from Lambda's time for the ledger and the answer
    lease_margin_seconds: int = 30  # a task's lease outlives the function's time by this
    worker_slots: int = 100  # jobs that one worker runs side by side
    worker_connections: int = 4  # that its jobs borrow; one more is its own

    @staticmethod
    def read(environ: Mapping[str, str]) -> Settings:
        """The settings, or one error that lists every fault."""
        reader = _Reader({name: value.strip() for name, value in environ.items() if value.strip()})
        settings = Settings(
            stack=reader.text("STACK") or reader.miss("SIGNALBOX_STACK is not set: it holds the stack's name"),
            database_url=reader.matching("DATABASE_URL", _DSN, "a postgresql:// URL"),
            database_secret_arn=reader.text("DATABASE_SECRET_ARN"),
            reader_url=reader.matching("READER_URL", _DSN, "a postgresql:// URL"),
            reader_secret_arn=reader.text("READER_SECRET_ARN"),
            writer_login_secret_arn=reader.text("WRITER_LOGIN_SECRET_ARN"),
            reader_login_secret_arn=reader.text("READER_LOGIN_SECRET_ARN"),
            database_host=reader.matching("DATABASE_HOST", _HOST, "host, host:port or host:port/name"),
            ca_bundle=reader.file("CA_BUNDLE"),
            database_error_details=reader.flag("DATABASE_ERROR_DETAILS"),
            packs=reader.names("PACKS"),
            disabled_tasks=frozenset(reader.names("DISABLED_TASKS")),
            event_bus=reader.text("EVENT_BUS"),
            job_events=reader.choice("JOB_EVENTS", ("all", "ends", "none")),
            operators_topic_arn=reader.matching("OPERATORS_TOPIC_ARN", _TOPIC, "the ARN of a topic of SNS"),
            notifications_topic_arn=reader.matching("NOTIFICATIONS_TOPIC_ARN", _TOPIC, "the ARN of a topic of SNS"),
            sender_address=reader.text("SENDER_ADDRESS"),
            jobs_bucket=reader.text("JOBS_BUCKET"),
            file_transfers=reader.transfers("FILE_TRANSFERS"),
            webhook_allow_http=reader.flag("WEBHOOK_ALLOW_HTTP"),
            webhook_ports=reader.ports("WEBHOOK_PORTS", "443,8443"),
            webhook_allowed_networks=reader.networks("WEBHOOK_ALLOWED_NETWORKS"),
            webhook_refused_networks=reader.networks("WEBHOOK_REFUSED_NETWORKS"),
            job_retention_days=reader.number("JOB_RETENTION_DAYS", 30, 1, 3650),
            execution_retention_days=reader.number("EXECUTION_RETENTION_DAYS", 30, 1, 3650),
            dead_letter_retention_days=reader.number("DEAD_LETTER_RETENTION_DAYS", 30, 1, 3650),
            notification_retention_days=reader.number("NOTIFICATION_RETENTION_DAYS", 90, 1, 3650),
            audit_retention_days=reader.number("AUDIT_RETENTION_DAYS", 365, 1, 3650),
            archive_bucket=reader.text("ARCHIVE_BUCKET"),
            max_continuations=reader.number("MAX_CONTINUATIONS", 100, 0, 10_000),
            budget_margin_seconds=reader.number("BUDGET_MARGIN_SECONDS", 10, 0, 300),
            lease_margin_seconds=reader.number("LEASE_MARGIN_SECONDS", 30, 1, 3600),
            worker_slots=reader.number("WORKER_SLOTS", 100, 1, 400),
            worker_connections=reader.number("WORKER_CONNECTIONS", 4, 1, 100),
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

    def choice(self, name: str, choices: Sequence[str]) -> str:
        """The first of them, where nothing is said."""
        value = self.text(name) or choices[0]
        if value not in choices:
            self.miss(f"SIGNALBOX_{name} is '{value}': it may be {', '.join(choices)}")
        return value

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

    def flag(self, name: str) -> bool:
        value = self.text(name) or "off"
        if value not in ("on", "off"):
            self.miss(f"SIGNALBOX_{name} is '{value}', neither on nor off")
        return value == "on"

    def ports(self, name: str, default: str) -> tuple[range, ...]:
        """Single ones and ranges: 443,8000-8999."""
        found = []
        for value in self._values(name, default):
            first, _, last = value.partition("-")
            ends = [int(end) if _PORT.fullmatch(end) else 0 for end in (first, last or first)]
            if not 1 <= ends[0] <= ends[1] <= 65535:
                self.miss(f"SIGNALBOX_{name} holds '{value}', which is neither a port nor a range such as 8000-8999")
            found.append(range(ends[0], ends[1] + 1))
        return tuple(found)

    def networks(self, name: str) -> tuple[IPv4Network | IPv6Network, ...]:
        found = []
        for value in self._values(name):
            try:
                found.append(ip_network(value))
            except ValueError:
                self.miss(f"SIGNALBOX_{name} holds '{value}', which is no network such as 10.1.0.0/16")
        return tuple(found)

    def file(self, name: str) -> str | None:
        value = self.text(name)
        if value is not None and not Path(value).is_file():
            self.miss(f"SIGNALBOX_{name} names '{value}', where there is no file")
        return value

    def names(self, name: str) -> tuple[str, ...]:
        values = self._values(name)
        for value in values:
            if not _NAME.fullmatch(value):
                self.miss(f"SIGNALBOX_{name} holds '{value}', which is no name: lower case, digits and _ only")
        return tuple(values)

    def _values(self, name: str, default: str = "") -> list[str]:
        return [value.strip() for value in (self.text(name) or default).split(",") if value.strip()]

    def transfers(self, name: str) -> FileTransfers:
        """Entries such as import:sales.*, export:sales.orders and bucket:partner-files."""
        open_to: dict[str, list[str]] = {"import": [], "export": [], "bucket": []}
        for entry in self._values(name):
            use, _, value = entry.partition(":")
            if use not in open_to:
                self.miss(f"SIGNALBOX_{name} holds '{entry}', which begins with none of import:, export: and bucket:")
            elif use == "bucket" and not _BUCKET.fullmatch(value):
                self.miss(f"SIGNALBOX_{name} holds '{entry}', which names no bucket")
            elif use != "bucket" and not _TABLE.fullmatch(value):
                self.miss(f"SIGNALBOX_{name} holds '{entry}', which names neither schema.table nor schema.*")
            elif use == "import" and value.startswith("signalbox."):
                self.miss(f"SIGNALBOX_{name} holds '{entry}': schema signalbox is the engine's own")
            else:
                open_to[use].append(value)
        return FileTransfers(*map(tuple, open_to.values()))
