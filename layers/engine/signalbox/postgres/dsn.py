"""Return the DSN that a secret holds.

The secret may be a DSN, or JSON: with a `url` (or `dsn`), or with username and password and, as RDS writes them, host,
port and dbname. RDS-managed secrets leave the host out.
"""

from __future__ import annotations

import json
from typing import Any

from psycopg.conninfo import conninfo_to_dict, make_conninfo

from signalbox.errors import SettingsRefused


def dsn_of(secret: str, name: str, address: str | None) -> str:
    """Return the DSN. `name` is the secret's, for errors; `address` is host[:port][/dbname], for a secret without."""
    if not secret.lstrip().startswith("{"):
        return secret.strip()
    try:
        fields: dict[str, Any] = json.loads(secret)
    except ValueError:
        raise SettingsRefused(f"secret {name} is neither a DSN nor JSON") from None
    if url := fields.get("url") or fields.get("dsn"):
        return str(url)
    missing = [field for field in ("username", "password") if not fields.get(field)]
    if not (fields.get("host") or address):
        missing.append("host (or the setting SIGNALBOX_DATABASE_HOST)")
    if missing:
        raise SettingsRefused(f"secret {name} lacks {', '.join(missing)}")
    named = {field: fields[field] for field in ("host", "port", "dbname") if fields.get(field)}
    named = {"dbname": "postgres"} | conninfo_to_dict(f"postgresql://{address or ''}") | named
    return make_conninfo("", **named, user=fields["username"], password=fields["password"])
