"""Read the log-ins of the functions from their secrets, for the migrator.

The migrator makes them where the stack brings the database itself. A secret's next version (AWSPENDING) is made beside
the current one, so that both work while functions change over.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Literal

from signalbox.aws.clients import Clients
from signalbox.aws.secrets import read_secret
from signalbox.errors import SettingsRefused

Group = Literal["writer", "reader"]


@dataclass(frozen=True, slots=True)
class LogIn:
    """Name a user of the database and the group whose rights it has."""

    name: str
    password: str = field(repr=False)
    group: Group


def read_logins(clients: Clients, arn: str, group: Group) -> Iterator[LogIn]:
    """Return the current log-in, and the next one if there is one."""
    current = _read(clients, arn, "AWSCURRENT", group)
    if current is None:
        raise SettingsRefused(f"secret {arn} of the {group} has no value yet: give it a username and a password")
    yield current
    pending = _read(clients, arn, "AWSPENDING", group)
    # A new password for a name in use would lock out functions that still have the old one.
    if pending is not None and pending.name != current.name:
        yield pending


def _read(clients: Clients, arn: str, stage: str, group: Group) -> LogIn | None:
    text = read_secret(clients, arn, stage)
    if text is None:
        return None
    try:
        fields = json.loads(text)
        return LogIn(str(fields["username"]), str(fields["password"]), group)
    except (ValueError, TypeError, KeyError):
        raise SettingsRefused(f"secret {arn} ({stage}) is not JSON with username and password") from None
