"""Find the connection of psycopg 3 to submit on: the one given, or the one below SQLAlchemy or Django.

SQLAlchemy and Django are recognised by the names of their classes and are never imported: an application that uses one
has loaded it.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import psycopg
from psycopg.pq import TransactionStatus

from signalbox.client.session_commit import act_after_commit
from signalbox.errors import Refused

Act = Callable[[], object]
SESSION, SESSION_PROXY = "sqlalchemy.orm.session.Session", "sqlalchemy.orm.scoping.scoped_session"
CONNECTION = "sqlalchemy.engine.base.Connection"
ASYNC_SESSION = "sqlalchemy.ext.asyncio.session.AsyncSession"
ASYNC_SESSION_PROXY = "sqlalchemy.ext.asyncio.scoping.async_scoped_session"
ASYNC_CONNECTION = "sqlalchemy.ext.asyncio.engine.AsyncConnection"
DJANGO, DJANGO_PROXY = "django.db.backends.base.base.BaseDatabaseWrapper", "django.utils.connection.ConnectionProxy"


class DriverRefused(Refused):
    """The client can't submit on a connection of this kind."""


@dataclass(frozen=True, slots=True)
class Borrowed:
    """Hold a driver's connection, in the transaction of the application that lends it."""

    driver: Any
    after_commit: Callable[[Act], None]
    """Calls its argument after the commit, where the connection reports one; elsewhere it does nothing."""


def borrow(connection: Any) -> Borrowed:
    """Return the connection of psycopg below, with its transaction begun."""
    kinds = _kinds(connection)
    if SESSION_PROXY in kinds:
        return borrow(connection())
    if SESSION in kinds:
        driver = connection.connection().connection.driver_connection
        return Borrowed(_begun(driver), lambda act: act_after_commit(connection, act))
    if CONNECTION in kinds:
        return _borrow_driver(connection.connection.driver_connection)
    if DJANGO in kinds or DJANGO_PROXY in kinds:
        return _borrow_from_django(connection)
    return _borrow_driver(connection)


async def borrow_async(connection: Any) -> Borrowed:
    """Return the AsyncConnection of psycopg below, with its transaction begun."""
    kinds = _kinds(connection)
    if ASYNC_SESSION_PROXY in kinds:
        return await borrow_async(connection())
    if ASYNC_SESSION in kinds:
        driver = await _driver_of(await connection.connection())
        return Borrowed(await _begun_async(driver), lambda act: act_after_commit(connection.sync_session, act))
    driver = await _begun_async(await _driver_of(connection) if ASYNC_CONNECTION in kinds else connection)
    return Borrowed(driver, lambda act: _act_if_committed(driver, act))


def _borrow_driver(driver: Any) -> Borrowed:
    return Borrowed(_begun(driver), lambda act: _act_if_committed(driver, act))


def _borrow_from_django(connection: Any) -> Borrowed:
    connection.ensure_connection()
    if not (connection.in_atomic_block or connection.get_autocommit()):
        return _borrow_driver(connection.connection)
    driver = _begun(connection.connection)
    return Borrowed(driver, lambda act: connection.on_commit(act, robust=True))


async def _driver_of(connection: Any) -> Any:
    return (await connection.get_raw_connection()).driver_connection


def _begun(driver: Any) -> psycopg.Connection[Any]:
    """Begin the transaction that psycopg would begin with the first statement; a block in it would commit otherwise."""
    if not isinstance(driver, psycopg.Connection):
        raise _refusal(driver, psycopg.AsyncConnection, "AsyncClient")
    if _is_unbegun(driver):
        driver.execute("SELECT 1")
    return driver


async def _begun_async(driver: Any) -> psycopg.AsyncConnection[Any]:
    if not isinstance(driver, psycopg.AsyncConnection):
        raise _refusal(driver, psycopg.Connection, "Client")
    if _is_unbegun(driver):
        await driver.execute("SELECT 1")
    return driver


def _is_unbegun(driver: Any) -> bool:
    return not driver.autocommit and bool(driver.info.transaction_status == TransactionStatus.IDLE)


def _act_if_committed(driver: Any, act: Act) -> None:
    """Act where each statement commits by itself."""
    if driver.info.transaction_status == TransactionStatus.IDLE:
        act()


def _refusal(driver: Any, other_kind: type, other_client: str) -> DriverRefused:
    kinds = _kinds(driver)
    name = f"{type(driver).__module__}.{type(driver).__qualname__}"
    for_other = {SESSION, CONNECTION} if other_client == "Client" else {ASYNC_SESSION, ASYNC_CONNECTION}
    if isinstance(driver, other_kind) or kinds & for_other:
        return DriverRefused(f"a {name} is for signalbox.{other_client}")
    return DriverRefused(
        f"jobs are submitted on a connection of psycopg 3, and this is a {name}: use psycopg 3 (with SQLAlchemy by "
        "postgresql+psycopg://), or submit in SQL, by SELECT signalbox.submit_job(…)"
    )


def _kinds(connection: Any) -> set[str]:
    return {f"{kind.__module__}.{kind.__qualname__}" for kind in type(connection).__mro__}
