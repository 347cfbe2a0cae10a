"""Verify the server's certificate, unless the DSN says otherwise."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import psycopg
from psycopg.conninfo import conninfo_to_dict, make_conninfo

from signalbox.errors import DatabaseUnavailable, SettingsRefused

# Where the runtimes and common systems keep the public authorities, including Amazon's (and so RDS Proxy's).
CA_BUNDLES = ("/etc/pki/tls/certs/ca-bundle.crt", "/etc/ssl/certs/ca-certificates.crt", "/etc/ssl/cert.pem")


def secure(dsn: str, ca_bundle: str | None) -> str:
    """Return the DSN with the certificate verified, unless the host is this machine or the DSN says otherwise."""
    given = _read(dsn)
    if _is_local(given) or "sslmode" in given:
        return make_conninfo("", **given)
    return make_conninfo("", **{**given, "sslmode": "verify-full", "sslrootcert": ca_bundle or _system_bundle()})


def _read(dsn: str) -> dict[str, str]:
    """Return the DSN's fields. libpq's own errors are not shown: they repeat pieces of the password."""
    try:
        given = {name: str(value) for name, value in conninfo_to_dict(dsn).items() if value is not None}
    except psycopg.ProgrammingError:
        given = {"port": "unknown"}
    misread = "@" in given.get("host", "") + given.get("dbname", "")
    if misread or not all(port.isdigit() for port in given.get("port", "").split(",") if port):
        raise SettingsRefused(
            "the database's DSN can't be read: percent-encode what is special in its user and password (such as / as "
            "%2F), or store the secret as JSON with username and password, which takes them as they are"
        )
    return given


def _is_local(given: Mapping[str, str]) -> bool:
    hosts = (given.get("host") or given.get("hostaddr") or "").split(",")
    return all(not h or h.startswith(("/", "@", "127.")) or h in ("localhost", "::1") for h in hosts)


def _system_bundle() -> str:
    for path in CA_BUNDLES:
        if Path(path).is_file():
            return path
    raise DatabaseUnavailable(
        f"no CA bundle to verify the database's certificate with: none of {', '.join(CA_BUNDLES)} exists; "
        "set SIGNALBOX_CA_BUNDLE to one"
    )
