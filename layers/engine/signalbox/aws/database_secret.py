"""Where the database is: a DSN from the environment, or one made from a secret in Secrets Manager, and kept."""

from __future__ import annotations

from dataclasses import replace

from signalbox.aws.clients import Clients
from signalbox.errors import SettingsRefused, Unavailable
from signalbox.postgres.dsn import dsn_of
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
            self._dsn = dsn_of(
                self._read() or "", self._settings.database_secret_arn or "", self._settings.database_host
            )
        return self._dsn

    def next(self) -> str | None:
        """The DSN by the version that a rotation has made and not yet made the current one."""
        if self._settings.database_url is not None:
            return None
        text, arn = self._read("AWSPENDING"), self._settings.database_secret_arn or ""
        return dsn_of(text, arn, self._settings.database_host) if text is not None else None

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
