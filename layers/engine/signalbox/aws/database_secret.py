"""Where the database is: a DSN from the environment, or one made from a secret in Secrets Manager, and kept.

The secret may be a DSN as it stands, or JSON: with a `url` (or `dsn`), or with username and password and, as RDS
writes them, host, port and dbname. RDS-managed secrets leave the host out; then it comes from the settings.
"""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

from signalbox.aws.clients import Clients
from signalbox.errors import SettingsRefused, Unavailable
from signalbox.runtime.settings import Settings


class DatabaseAddress:
    """Callable as `Database` wants it: gives the DSN, read once, read again when asked for a fresh one."""

    def __init__(self, settings: Settings, clients: Clients) -> None:
        self._settings = settings
        self._clients = clients
        self._dsn = settings.database_url

    @staticmethod
    def of_reader(settings: Settings, clients: Clients) -> DatabaseAddress:
        """The same database by the log-in for what only reads."""
        reader = replace(settings, database_url=settings.reader_url, database_secret_arn=settings.reader_secret_arn)
        return DatabaseAddress(reader, clients)

    def __call__(self, fresh: bool) -> str:
        if self._dsn is None or (fresh and self._settings.database_url is None):
            self._dsn = dsn_of(self._read() or "", self._settings)
        return self._dsn

    def next(self) -> str | None:
        """The DSN by the version that a rotation has made and not yet made the current one."""
        if self._settings.database_url is not None:
            return None
        text = self._read("AWSPENDING")
        return dsn_of(text, self._settings) if text is not None else None

    def _read(self, stage: str = "AWSCURRENT") -> str | None:
        """None where the secret has no version at that stage."""
        from botocore.exceptions import BotoCoreError, ClientError

        arn = self._settings.database_secret_arn or ""
        try:
            return self._clients.secretsmanager.get_secret_value(SecretId=arn, VersionStage=stage)["SecretString"]
        except KeyError:
            raise SettingsRefused(f"secret {arn} holds bytes: store the database's DSN or JSON as text") from None
        except (BotoCoreError, ClientError) as error:
            code = error.response["Error"]["Code"] if isinstance(error, ClientError) else ""
            if stage != "AWSCURRENT" and code == "ResourceNotFoundException":
                return None
            raise Unavailable(f"secret {arn} can't be read: {error}") from None


def dsn_of(secret: str, settings: Settings) -> str:
    """The DSN that a secret stands for."""
    if not secret.lstrip().startswith("{"):
        return secret.strip()
    fields = _fields(secret, settings)
    if url := fields.get("url") or fields.get("dsn"):
        return str(url)
    return _assemble(fields, settings)


def _fields(secret: str, settings: Settings) -> dict[str, Any]:
    try:
        fields: dict[str, Any] = json.loads(secret)
        return fields
    except ValueError:
        raise SettingsRefused(f"secret {settings.database_secret_arn} is neither a DSN nor JSON") from None


def _assemble(fields: dict[str, Any], settings: Settings) -> str:
    from psycopg.conninfo import conninfo_to_dict, make_conninfo

    missing = [name for name in ("username", "password") if not fields.get(name)]
    if not (fields.get("host") or settings.database_host):
        missing.append("host (or the setting SIGNALBOX_DATABASE_HOST)")
    if missing:
        raise SettingsRefused(f"secret {settings.database_secret_arn} lacks {', '.join(missing)}")
    named = {key: fields[key] for key in ("host", "port", "dbname") if fields.get(key)}
    return make_conninfo(
        "",
        **({"dbname": "postgres"} | conninfo_to_dict(f"postgresql://{settings.database_host or ''}") | named),
        user=fields["username"],
        password=fields["password"],
    )
