"""Read the engine's settings, once for each function, at its cold start."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from ipaddress import IPv4Network, IPv6Network, ip_network
from pathlib import Path
from typing import Annotated, Any, ClassVar, Literal

from pydantic import AfterValidator, BeforeValidator, ConfigDict, Field, PlainValidator

from signalbox.packs.environment import EnvironmentSettings

_NAME = re.compile(r"[a-z][a-z0-9_]*")
_DSN = re.compile(r"postgres(ql)?://")
_HOST = re.compile(r"([\w.%-]+|\[[0-9A-Fa-f:.]+\])(:[0-9]{1,5})?(/[^\s/?]+)?$")
_PORT = re.compile(r"[0-9]{1,5}")
_TABLE = re.compile(r"[a-z_][a-z0-9_]*\.([a-z_][a-z0-9_]*|\*)")
_BUCKET = re.compile(r"[a-z0-9][a-z0-9.-]{1,61}[a-z0-9]")
_CLEAR = r"http://(127\.0\.0\.1|localhost)(:[0-9]+)?(/[^\s?#@]*)?"  # on loopback, for trials
_ISSUER = re.compile(rf"https://[^\s?#@]+|{_CLEAR}")
_TOPIC = re.compile(r"arn:[^:]+:sns:[^:]+:\d{12}:[\w-]+(\.fifo)?$")


@dataclass(frozen=True, slots=True)
class FileTransfers:
    """List what import_table and export_table may use beside the stack's own bucket."""

    import_tables: tuple[str, ...] = ()  # schema.table, or schema.*
    export_tables: tuple[str, ...] = ()  # of tables and views
    buckets: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class JwtIssuer:
    """Name whose tokens the HTTP API takes, for which audience, and the claims that say what their bearers may do."""

    url: str
    audience: str
    role_claim: str = "roles"
    tenant_claim: str | None = None


def _matching(pattern: re.Pattern[str], what: str) -> AfterValidator:
    def check(value: str) -> str:
        if not pattern.match(value):
            raise ValueError(f"is not {what}")
        return value

    return AfterValidator(check)


def _each(read: Callable[[str], Any], collect: Callable[[list[Any]], Any] = tuple) -> PlainValidator:
    """Read a list with commas, an entry at a time, and name every wrong one."""

    def read_all(value: Any) -> Any:
        if not isinstance(value, str):
            return value
        found, faults = [], []
        for entry in filter(None, map(str.strip, value.split(","))):
            try:
                found.append(read(entry))
            except ValueError as fault:
                faults.append(str(fault))
        if faults:
            raise ValueError("; it ".join(faults))
        return collect(found)

    return PlainValidator(read_all)


def _read_name(value: str) -> str:
    if not _NAME.fullmatch(value):
        raise ValueError(f"holds '{value}', which is not a name: use lower case, digits and _ only")
    return value


def _read_ports(value: str) -> range:
    """Read a port, or a range such as 8000-8999."""
    first, _, last = value.partition("-")
    ends = [int(end) if _PORT.fullmatch(end) else 0 for end in (first, last or first)]
    if not 1 <= ends[0] <= ends[1] <= 65535:
        raise ValueError(f"holds '{value}', which is neither a port nor a range such as 8000-8999")
    return range(ends[0], ends[1] + 1)


def _read_network(value: str) -> IPv4Network | IPv6Network:
    try:
        return ip_network(value)
    except ValueError:
        raise ValueError(f"holds '{value}', which is not a network such as 10.1.0.0/16") from None


def _read_flag(value: Any) -> Any:
    if isinstance(value, str) and value not in ("on", "off"):
        raise ValueError(f"is '{value}', neither on nor off")
    return value


def _read_transfer(entry: str) -> tuple[str, str]:
    """Read an entry such as import:sales.*, export:sales.orders or bucket:partner-files."""
    use, _, named = entry.partition(":")
    if use not in ("import", "export", "bucket"):
        raise ValueError(f"holds '{entry}', which must start with import:, export: or bucket:")
    if use == "bucket" and not _BUCKET.fullmatch(named):
        raise ValueError(f"holds '{entry}', which names no bucket")
    if use != "bucket" and not _TABLE.fullmatch(named):
        raise ValueError(f"holds '{entry}', which names neither schema.table nor schema.*")
    if use == "import" and named.startswith("signalbox."):
        raise ValueError(f"holds '{entry}': schema signalbox is the engine's own")
    return use, named


def _collect_transfers(entries: list[tuple[str, str]]) -> FileTransfers:
    return FileTransfers(
        *(tuple(named for of, named in entries if of == use) for use in ("import", "export", "bucket"))
    )


def _read_issuer(value: Any) -> Any:
    """Read ISSUER AUDIENCE [ROLE_CLAIM] [TENANT_CLAIM]."""
    parts = value.split() if isinstance(value, str) else []
    if not 2 <= len(parts) <= 4 or not _ISSUER.fullmatch(parts[0]):
        raise ValueError(
            "is not ISSUER AUDIENCE [ROLE_CLAIM] [TENANT_CLAIM] with blanks between them, and an issuer of https://"
        )
    return JwtIssuer(*parts)


def _check_file(value: str) -> str:
    if not Path(value).is_file():
        raise ValueError(f"names '{value}', where there is no file")
    return value


Dsn = Annotated[str, _matching(_DSN, "a postgresql:// URL")]
Host = Annotated[str, _matching(_HOST, "host, host:port or host:port/name")]
Topic = Annotated[str, _matching(_TOPIC, "the ARN of a topic of SNS")]
ExistingFile = Annotated[str, AfterValidator(_check_file)]
Flag = Annotated[bool, BeforeValidator(_read_flag)]
Days = Annotated[int, Field(ge=1, le=3650)]
Networks = Annotated[tuple[IPv4Network | IPv6Network, ...], _each(_read_network)]


class Settings(EnvironmentSettings):
    """Read the engine's settings. Each field is the variable SIGNALBOX_<FIELD>."""

    model_config = ConfigDict(extra="ignore")  # other programs' variables have this prefix, too
    prefix: ClassVar[str] = "SIGNALBOX_"

    stack: str
    database_url: Dsn | None = Field(default=None, repr=False)  # holds a password
    database_secret_arn: str | None = None
    reader_url: Dsn | None = Field(default=None, repr=False)
    reader_secret_arn: str | None = None  # of the log-in for what only reads; None: the one log-in does that, too
    writer_login_secret_arn: str | None = None  # of the log-ins that the migrator is to make
    reader_login_secret_arn: str | None = None
    database_host: Host | None = None  # host[:port][/name], for secrets that hold only user and password
    ca_bundle: ExistingFile | None = None
    database_error_details: Flag = False  # whether its errors are kept and logged with what they quote of rows
    packs: Annotated[tuple[str, ...], _each(_read_name)] = ()
    disabled_tasks: Annotated[frozenset[str], _each(_read_name, frozenset)] = frozenset()
    event_bus: str | None = None  # where each change of a job's status is published; None: nowhere
    job_events: Literal["all", "ends", "none"] = "all"  # ends: only a job's final status, a third or less
    operators_topic_arn: Topic | None = None  # of SNS, for new dead letters
    notifications_topic_arn: Topic | None = None  # of SNS, for jobs that notify people
    sender_address: str | None = None  # that their mail comes from
    jobs_bucket: str | None = None  # of the files that jobs read and write
    file_transfers: Annotated[FileTransfers, _each(_read_transfer, _collect_transfers)] = FileTransfers()
    jwt_issuer: Annotated[JwtIssuer | None, PlainValidator(_read_issuer)] = None  # whose tokens the HTTP API takes, too
    webhook_allow_http: Flag = False  # for receivers on the laptop and in tests
    webhook_ports: Annotated[tuple[range, ...], _each(_read_ports)] = (range(443, 444), range(8443, 8444))
    webhook_allowed_networks: Networks = ()  # beside the public internet
    webhook_refused_networks: Networks = ()  # refused although public: our own networks
    job_retention_days: Days = 30  # of jobs that have completed or were cancelled
    execution_retention_days: Days = 30  # of the attempts of jobs that are kept for longer
    dead_letter_retention_days: Days = 30  # of the closed ones; then they go to the audit log
    notification_retention_days: Days = 90  # of notifications in the application, read or not
    audit_retention_days: Days = 365  # of what operators did, and of archived dead letters
    archive_bucket: str | None = None  # to which jobs, attempts and audit rows go before they are pruned
    max_continuations: int = Field(default=100, ge=0, le=10_000)  # of one slot, so that a task that never ends is seen
    budget_margin_seconds: int = Field(
        default=10, ge=0, le=300
    )  # kept back from Lambda's time for the ledger and the answer
    lease_margin_seconds: int = Field(default=30, ge=1, le=3600)  # a task's lease outlives the function's time by this
    worker_slots: int = Field(default=100, ge=1, le=400)  # jobs that one worker runs side by side
    worker_connections: int = Field(default=4, ge=1, le=100)  # that its jobs borrow; one more is its own

    @classmethod
    def _faults_of_all(cls, given: Mapping[str, Any]) -> list[str]:
        if given.get("database_url") or given.get("database_secret_arn"):
            return []
        return ["neither SIGNALBOX_DATABASE_SECRET_ARN nor SIGNALBOX_DATABASE_URL is set: one names the database"]
