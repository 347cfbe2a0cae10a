"""Find the address of the database: a DSN from the environment, or one made from a secret of Secrets Manager."""

from __future__ import annotations

from signalbox.aws.clients import Clients
from signalbox.aws.secrets import read_secret
from signalbox.errors import Unavailable
from signalbox.postgres.dsn import dsn_of
from signalbox.runtime.settings import Settings


class DatabaseAddress:
    """Return the DSN when called, as `Database` wants it. The secret is read once, and again for a fresh one."""

    def __init__(self, settings: Settings, clients: Clients) -> None:
        self._settings = settings
        self._clients = clients
        self._dsn = settings.database_url

    @staticmethod
    def of_reader(settings: Settings, clients: Clients) -> DatabaseAddress:
        """Return the address of the same database for the log-in that only reads."""
        reader = {"database_url": settings.reader_url, "database_secret_arn": settings.reader_secret_arn}
        return DatabaseAddress(settings.model_copy(update=reader), clients)

    def __call__(self, fresh: bool) -> str:
        if self._dsn is None or (fresh and self._settings.database_url is None):
            self._dsn = self._read("AWSCURRENT")
        if self._dsn is None:
            raise Unavailable(f"no secret {self._settings.database_secret_arn}, or it has no value yet")
        return self._dsn

    def next(self) -> str | None:
        """Return the DSN of the secret's next version, which a rotation has made and not yet made current."""
        return None if self._settings.database_url is not None else self._read("AWSPENDING")

    def _read(self, stage: str) -> str | None:
        arn = self._settings.database_secret_arn or ""
        text = read_secret(self._clients, arn, stage)
        return None if text is None else dsn_of(text, arn, self._settings.database_host)
