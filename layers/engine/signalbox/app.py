"""Serve a function's handler: the App starts once from the environment, then takes one payload at a time."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import Any, Literal

from signalbox.aws.clients import Clients
from signalbox.aws.database_secret import DatabaseAddress
from signalbox.engine_pack import load_packs
from signalbox.errors import DatabaseUnavailable, PayloadRefused, Refused, SchemaMismatch
from signalbox.invocation import Invocation, Resources
from signalbox.migrate import migrations
from signalbox.packs.registries import JobTypeRegistry, TaskRegistry
from signalbox.postgres.async_connection import AsyncDatabasePool
from signalbox.postgres.connection import Connection, Database
from signalbox.postgres.pool import DatabasePool
from signalbox.runtime.log import make_logger
from signalbox.runtime.settings import Settings

FunctionName = Literal["archiver", "poller"]
_POLLER_PARAMS = ("force_retry", "backfill_hours", "limit")


@dataclass(frozen=True, slots=True)
class App:
    """Serve the events of one function. There is one App per execution environment."""

    resources: Resources

    @staticmethod
    def start(environ: Mapping[str, str]) -> App:
        """Read and check the settings; open nothing yet."""
        settings = Settings.read(environ)
        packs = load_packs(settings.packs)
        function = environ.get("AWS_LAMBDA_FUNCTION_NAME", "signalbox")
        clients, size = Clients(), settings.worker_connections

        def require_current(connection: Connection) -> None:
            migrations.require_current(connection, packs)

        make_database = _databases(settings, DatabaseAddress(settings, clients), function, require_current)
        database = make_database()
        registry = TaskRegistry(task for pack in packs for task in pack.tasks)
        resources = Resources(
            settings,
            registry,
            database,
            DatabasePool(make_database, size),
            AsyncDatabasePool(database, size),
            clients,
            make_logger(settings.stack, error_details=settings.database_error_details),
            JobTypeRegistry.of(packs, registry),
            packs,
            environ.get("AWS_LAMBDA_LOG_STREAM_NAME", ""),
            environ=environ,
        )
        if settings.reader_url or settings.reader_secret_arn:
            make_reader = _databases(settings, DatabaseAddress.of_reader(settings, clients), function)
            resources = replace(resources, readers=DatabasePool(make_reader, size))
        return App(resources)

    def close(self) -> None:
        """Close every connection. An execution environment ends without it."""
        self.resources.database.close()
        self.resources.pool.close()
        self.resources.async_pool.close()
        if self.resources.readers is not None:
            self.resources.readers.close()

    def operate(self, event: object, invocation: Invocation) -> dict[str, Any]:
        """Serve a request of the HTTP API, or run one operation. Return a refusal as an answer, not as an error.

        Lambda counts an error against the function: three typing mistakes would raise its alarm.
        """
        if isinstance(event, dict) and "requestContext" in event:
            return self._answer_request(event, invocation)
        from signalbox.operations import operate

        try:
            with self._counting_outages():
                return operate(self.resources, event, invocation)
        except SchemaMismatch:
            raise
        except Refused as error:
            kind = type(error).__name__
            self.resources.log.info("operation.refused", extra={"error": kind})
            return {"refused": {"errorType": kind, "errorMessage": str(error)}}

    def _answer_request(self, event: Mapping[str, Any], invocation: Invocation) -> dict[str, Any]:
        path = str(event.get("rawPath") or "")
        if path.startswith("/v1/") or path in ("/metrics", "/openapi.json"):
            from signalbox.api.serve import serve

            return serve(self.resources, event, invocation)
        from signalbox.api.pack_routes import is_of_a_pack, serve_pack_route

        if is_of_a_pack(self.resources.packs, path):
            return serve_pack_route(self.resources, event, invocation)
        from signalbox.pages.serve import serve_pages

        return serve_pages(self.resources, event, invocation)

    def run_task(self, event: object, invocation: Invocation) -> dict[str, Any]:
        """Run a task for the archiver. It refuses operations, because rules invoke it."""
        if isinstance(event, dict) and "operation" in event:
            stack = self.resources.settings.stack
            raise PayloadRefused(f"operations are answered by {stack}-api, not by {stack}-archiver")
        return self._run(event, "archiver", invocation)

    def poll(self, event: object, invocation: Invocation) -> dict[str, Any]:
        """Run the task poll_data. The poller's payload has the params beside the fields of every task's payload."""
        if not isinstance(event, dict):
            return self._run(event, "poller", invocation)
        fields = {name: value for name, value in event.items() if name not in _POLLER_PARAMS}
        beside = {name: event[name] for name in _POLLER_PARAMS if name in event}
        params = fields.get("params", {})
        if beside and isinstance(params, dict):  # other params are refused below
            fields["params"] = params | beside
        if not fields.keys() & {"force", "scheduled_time", "origin"}:
            fields["force"] = True  # by hand: the slot's own poll has usually succeeded already
        return self._run({"task": "poll_data"} | fields, "poller", invocation)

    def work(self, event: object, invocation: Invocation) -> dict[str, Any]:
        """Run the jobs that the messages of a lane name."""
        from signalbox.worker.worker import work

        with self._counting_outages():
            return work(self.resources, event, invocation)

    def consume_dead_letters(self, event: object, invocation: Invocation) -> dict[str, Any]:
        """Record what the dead-letter queues and the queue of failed invocations hold."""
        from signalbox.dead_letters.consumer import consume_dead_letters

        with self._counting_outages():
            return consume_dead_letters(self.resources, event, invocation)

    def _run(self, event: object, function: FunctionName, invocation: Invocation) -> dict[str, Any]:
        from signalbox.ledger.run import run_task
        from signalbox.ledger.task_payload import TaskPayload
        from signalbox.packs.payload import read_payload

        payload = read_payload(TaskPayload, event)
        task = self.resources.tasks.find(payload.task)
        if task.function != function:
            stack = self.resources.settings.stack
            raise PayloadRefused(f"task '{task.name}' is run by {stack}-{task.function}, not by {stack}-{function}")
        with self._counting_outages():
            return run_task(self.resources, payload, invocation)

    @contextmanager
    def _counting_outages(self) -> Iterator[None]:
        try:
            yield
        except DatabaseUnavailable:
            from signalbox.runtime.metrics import write_line

            write_line(self.resources.settings.stack, "database.unreachable", {"DatabaseUnreachable": 1})
            raise


def _databases(
    settings: Settings,
    address: DatabaseAddress,
    application: str,
    inspect: Callable[[Connection], None] = lambda _: None,
) -> Callable[[], Database]:
    def make_database() -> Database:
        return Database(
            address,
            ca_bundle=settings.ca_bundle,
            application=application,
            inspect=inspect,
            locate_next=address.next,
            error_details=settings.database_error_details,
        )

    return make_database
