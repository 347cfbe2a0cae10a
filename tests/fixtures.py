"""One PostgreSQL for each test process, one fresh database for each test.

SIGNALBOX_TEST_DATABASE names another server (14 or later) by a DSN whose role may create databases.
"""

from __future__ import annotations

import os
import signal
from collections.abc import Iterator
from itertools import count
from pathlib import Path

import hypothesis
import psycopg
import pytest
from psycopg import sql
from psycopg.conninfo import make_conninfo

from signalbox.engine_pack import ENGINE
from signalbox_laptop.postgres.embedded import EmbeddedPostgres
from tests.rights.plugin import (  # noqa: F401 - hooks, and a fixture for all tests
    only_listed_calls,
    pytest_configure,
    pytest_sessionfinish,
    pytest_testnodedown,
)
from tests.support.build import Interpreter, runtime_version
from tests.support.db_users import log_in
from tests.support.invoke_recorder import InvokeRecorder
from tests.support.schema import make_schema
from tests.support.server_home import lies_in_memory, server_home
from tests.support.stage import Stage

_numbers = count()
hypothesis.settings.register_profile("no deadline", deadline=None)  # others may keep the machine busy
hypothesis.settings.load_profile("no deadline")
# A shell that runs the tests in the background ignores SIGINT, and so would all processes that they start.
signal.signal(signal.SIGINT, signal.default_int_handler)


@pytest.fixture(scope="session")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """A DSN of the server that this process tests against."""
    if given := os.environ.get("SIGNALBOX_TEST_DATABASE"):
        yield given
        return
    version = int(os.environ.get("SIGNALBOX_TEST_POSTGRES", "18"))
    with server_home(tmp_path_factory) as home:
        postgres = EmbeddedPostgres(home, durable=False, version=version)
        try:
            yield postgres.start()
        finally:
            postgres.stop()


@pytest.fixture(scope="session")
def template(server: str) -> Iterator[str]:
    """A migrated database to copy from: a copy takes a tenth of the time of the migrations."""
    with new_database(server) as dsn:
        make_schema(dsn, [ENGINE])
        yield dsn


@pytest.fixture
def dsn(server: str, template: str) -> Iterator[str]:
    """A fresh, migrated database."""
    with new_database(server, template=psycopg.conninfo.conninfo_to_dict(template)["dbname"]) as fresh:
        yield fresh


@pytest.fixture
def empty_dsn(server: str) -> Iterator[str]:
    """A fresh database without any schema of ours."""
    with new_database(server) as fresh:
        yield fresh


@pytest.fixture
def writer(dsn: str) -> str:
    """The test's database for a member of signalbox_writer, as which the functions log in."""
    return log_in(dsn, "writer")


@pytest.fixture
def reader(dsn: str) -> str:
    """The same for what only reads."""
    return log_in(dsn, "reader")


@pytest.fixture
def db(dsn: str) -> Iterator[psycopg.Connection]:
    """A second pair of eyes on the test's database."""
    with psycopg.connect(dsn, autocommit=True) as connection:
        connection.execute("SET timezone = 'UTC'")
        yield connection


@pytest.fixture
def invokes(monkeypatch: pytest.MonkeyPatch) -> Iterator[InvokeRecorder]:
    """What was handed to Lambda, over a real socket."""
    with InvokeRecorder() as recorder:
        monkeypatch.setenv("AWS_ENDPOINT_URL", recorder.url)
        monkeypatch.setenv("AWS_DEFAULT_REGION", "us-east-1")
        monkeypatch.setenv("AWS_ACCESS_KEY_ID", "test")
        monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "test")
        yield recorder


@pytest.fixture
def stage(writer: str, invokes: InvokeRecorder) -> Iterator[Stage]:
    """An engine on the test's database, logged in as functions are."""
    with Stage(writer, invokes) as stage:
        yield stage


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """What the packages ran on: a machine without the runtime's Python tries them with its own, and should say so."""
    reports = terminalreporter.getreports("passed") + terminalreporter.getreports("failed")
    if any("test_packages.py" in report.nodeid for report in reports):
        interpreter, wanted = Interpreter.like_lambdas(), runtime_version()
        of_lambda = (
            "as in Lambda" if interpreter.version == wanted else f"since there is no {wanted} here, as in Lambda"
        )
        terminalreporter.write_line(f"the packages were built for and run by Python {interpreter.version}, {of_lambda}")


class new_database:  # noqa: N801 - reads as a verb where it is used
    def __init__(self, server: str, template: object = "template1") -> None:
        self.server, self.template = server, str(template)
        self.name = f"test_{os.getpid()}_{next(_numbers)}"

    def __enter__(self) -> str:
        # In memory files are copied faster than through the log; on a disk it is the other way round.
        copied = "STRATEGY FILE_COPY" if lies_in_memory(self.server) else ""
        statement = sql.SQL(f"CREATE DATABASE {{}} TEMPLATE {{}} {copied}")
        self._run(statement.format(sql.Identifier(self.name), sql.Identifier(self.template)))
        return make_conninfo(self.server, dbname=self.name)

    def __exit__(self, *_: object) -> None:
        self._run(sql.SQL("DROP DATABASE {} WITH (FORCE)").format(sql.Identifier(self.name)))

    def _run(self, statement: sql.Composed) -> None:
        with psycopg.connect(self.server, autocommit=True) as connection:
            connection.execute(statement)


@pytest.fixture(scope="session")
def root() -> Path:
    """The top of the repository."""
    return Path(__file__).parents[1]
