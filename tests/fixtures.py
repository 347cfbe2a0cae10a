"""Give short names to the fixtures of `signalbox.testing`, and add what our own tests need."""

from __future__ import annotations

import signal
from collections.abc import Iterator
from pathlib import Path

import hypothesis
import psycopg
import pytest

from signalbox.testing.aws import AwsStandIn
from signalbox.testing.databases import log_in, new_database
from signalbox.testing.stage import Stage
from signalbox_laptop.moto.process import MotoProcess
from signalbox_laptop.stand_ins.aws_services import AwsServices
from tests.rights.plugin import (  # noqa: F401 - hooks, and a fixture for all tests
    only_listed_calls,
    pytest_configure,
    pytest_sessionfinish,
    pytest_testnodedown,
)
from tests.support.build import Interpreter, runtime_version
from tests.support.server_home import server_home
from tests.support.tasks import TEST_TASKS

# Without a deadline, since others may keep the machine busy; without explanations, whose tracing has hung Python 3.11.
_PHASES = [phase for phase in hypothesis.Phase if phase is not hypothesis.Phase.explain]
hypothesis.settings.register_profile("ours", deadline=None, phases=_PHASES)
hypothesis.settings.load_profile("ours")
# A shell that runs the tests in the background ignores SIGINT, and so would all processes that they start.
signal.signal(signal.SIGINT, signal.default_int_handler)


@pytest.fixture(scope="session")
def signalbox_server_home(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """Keep the server's files in memory where there is room."""
    with server_home(tmp_path_factory) as home:
        yield home


@pytest.fixture(scope="session")
def server(signalbox_server: str) -> str:
    """Return the DSN of the server that this process tests against."""
    return signalbox_server


@pytest.fixture(scope="session")
def moto(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """Start AWS's stand-in for this process; return its address."""
    process = MotoProcess(tmp_path_factory.mktemp("moto"))
    try:
        yield process.start()
    finally:
        process.stop()


@pytest.fixture
def services(moto: str, monkeypatch: pytest.MonkeyPatch) -> Iterator[AwsServices]:
    """Start the stand-ins for Textract, Bedrock, SES and SNS; `addresses` says where each takes instructions."""
    services = AwsServices(moto)
    services.start()
    for name, url in services.environment.items():
        monkeypatch.setenv(name, url)
    yield services
    services.stop()


@pytest.fixture
def dsn(signalbox_dsn: str) -> str:
    """Make a fresh, migrated database."""
    return signalbox_dsn


@pytest.fixture
def empty_dsn(server: str) -> Iterator[str]:
    """Make a fresh database without any schema of ours."""
    with new_database(server) as fresh:
        yield fresh


@pytest.fixture
def writer(dsn: str) -> str:
    """Open the test's database as a member of signalbox_writer, as the functions do."""
    return log_in(dsn, "writer")


@pytest.fixture
def reader(dsn: str) -> str:
    """Open the test's database as a reader."""
    return log_in(dsn, "reader")


@pytest.fixture
def db(signalbox_db: psycopg.Connection) -> psycopg.Connection:
    """Open a second connection to the test's database."""
    return signalbox_db


@pytest.fixture
def invokes(signalbox_aws: AwsStandIn) -> AwsStandIn:
    """Start a stand-in that notes what Lambda and the rest of AWS were asked."""
    return signalbox_aws


@pytest.fixture
def stage(signalbox_stage: Stage) -> Stage:
    """Make a stage on the test's database with the tests' tasks."""
    return signalbox_stage.with_tasks(*TEST_TASKS)


@pytest.fixture
def effects(db: psycopg.Connection) -> None:
    """Make the tables that the tests' tasks write, and the one whose rows make some tasks fail."""
    db.execute("CREATE TABLE effects (task text, slot timestamptz, now timestamptz, worker_id text)")
    db.execute("CREATE TABLE troubles (id int)")


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """Say which Python the packages ran on: without the runtime's own, a machine tries them with another."""
    reports = terminalreporter.getreports("passed") + terminalreporter.getreports("failed")
    if any("test_packages.py" in report.nodeid for report in reports):
        interpreter, wanted = Interpreter.like_lambdas(), runtime_version()
        of_lambda = (
            "as in Lambda" if interpreter.version == wanted else f"since there is no {wanted} here, as in Lambda"
        )
        terminalreporter.write_line(f"the packages were built for and run by Python {interpreter.version}, {of_lambda}")


@pytest.fixture(scope="session")
def root() -> Path:
    """Return the top of the repository."""
    return Path(__file__).parents[1]
