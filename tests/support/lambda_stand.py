"""Run a test stand for the Lambda service: moto in its own process, the service, its front, and boto3 clients.

A moto and a service are shared by all the tests of a worker; each test deploys functions of its own names.
"""

from __future__ import annotations

import io
import itertools
import json
import queue
import socket
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import ExitStack, closing, contextmanager, suppress
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, overload

import boto3
import pytest
from botocore.config import Config

from signalbox_laptop.lambda_api.endpoint import Front
from signalbox_laptop.lambda_api.http_server import Request, Response
from signalbox_laptop.lambda_control.service import LambdaService
from signalbox_laptop.lambda_control.settings import ServiceSettings
from tests.support.zips import zipped

if TYPE_CHECKING:
    from mypy_boto3_lambda import LambdaClient
    from mypy_boto3_lambda.type_defs import InvocationResponseTypeDef

HANDLERS = Path(__file__).parent / "lambda_handlers"
ROLE = "arn:aws:iam::123456789012:role/functions"
# Far above what anything here takes; a test that waits so long has failed.
PATIENCE = 20.0

_MOTO = """
import logging, sys
from signalbox_laptop.moto.patches import patch_moto
patch_moto()
from moto.server import ThreadedMotoServer
logging.getLogger("werkzeug").setLevel(logging.ERROR)
server = ThreadedMotoServer("127.0.0.1", 0, verbose=False)
server.start()
print(server.get_host_and_port()[1], flush=True)
sys.stdin.read()
"""


def client(service: str, endpoint: str, **config: Any) -> Any:
    return boto3.client(
        service,  # type: ignore[call-overload]
        endpoint_url=endpoint,
        region_name="us-east-1",
        aws_access_key_id="test",
        aws_secret_access_key="test",
        config=Config(retries={"total_max_attempts": 1}, read_timeout=PATIENCE, **config),
    )


@contextmanager
def running_moto() -> Iterator[str]:
    """Run moto until the end of the block or of this process, whichever comes first."""
    with subprocess.Popen(
        [sys.executable, "-c", _MOTO], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as process:
        assert process.stdin is not None
        assert process.stdout is not None
        endpoint = f"http://127.0.0.1:{process.stdout.readline().strip()}"
        with closing(client("iam", endpoint)) as iam:
            iam.create_role(RoleName="functions", AssumeRolePolicyDocument="{}")
        yield endpoint
        process.stdin.close()


def handler_zip(module: str) -> bytes:
    return zipped({f"{module}.py": (HANDLERS / f"{module}.py").read_text()})


class Told:
    """Hold one invocation of the puppet that waits for its reply."""

    def __init__(self, connection: socket.socket) -> None:
        self._connection = connection
        self._stream = connection.makefile("rw")
        self.said: dict[str, Any] = json.loads(self._stream.readline())

    @property
    def event(self) -> Any:
        return self.said["event"]

    @property
    def pid(self) -> int:
        return int(self.said["pid"])

    def reply(self, **order: Any) -> None:
        print(json.dumps(order), file=self._stream, flush=True)

    def hear(self) -> Any:
        return json.loads(self._stream.readline())

    def close(self) -> None:
        # What was never read or sent does not matter any more.
        with suppress(OSError):
            self._stream.close()
        self._connection.close()


class Puppeteer:
    """Answer tests/support/lambda_handlers/puppet.py."""

    def __init__(self) -> None:
        self._server = socket.create_server(("127.0.0.1", 0))
        self._told: queue.Queue[Told] = queue.Queue()
        self._all: list[Told] = []
        self._thread = threading.Thread(target=self._listen, daemon=True)
        self._thread.start()

    @property
    def address(self) -> str:
        host, port = self._server.getsockname()
        return f"{host}:{port}"

    def next(self, timeout: float = PATIENCE) -> Told:
        """Return the next invocation that waits for a reply; raise queue.Empty if none comes."""
        told = self._told.get(timeout=timeout)
        self._all.append(told)
        return told

    def none_waits(self) -> bool:
        return self._told.empty()

    def close(self) -> None:
        """Hang up on all puppets; a second time does nothing."""
        if not self._thread.is_alive():
            return
        self._server.shutdown(socket.SHUT_RDWR)
        self._thread.join()
        self._server.close()
        while not self._told.empty():
            self._all.append(self._told.get())
        for told in self._all:
            told.close()

    def _listen(self) -> None:
        while True:
            try:
                connection, _ = self._server.accept()
            except OSError:
                return
            self._told.put(Told(connection))


@dataclass
class Stand:
    """Hold a service and its front, with what a test does to them."""

    settings: ServiceSettings
    service: LambdaService
    front: Front
    puppeteer: Puppeteer
    controlled: list[Request] = field(default_factory=list)
    _names: Iterator[int] = field(default_factory=itertools.count)
    _deployed: list[Callable[[], Any]] = field(default_factory=list)

    @property
    def endpoint(self) -> str:
        return self.front.endpoint

    @property
    def lambda_(self) -> LambdaClient:
        return self.client("lambda")

    @overload
    def client(self, service: Literal["lambda"]) -> LambdaClient: ...
    @overload
    def client(self, service: str) -> Any: ...
    def client(self, service: str) -> Any:
        if service not in self._clients:
            self._clients[service] = client(service, self.endpoint, max_pool_connections=20)
        return self._clients[service]

    _clients: dict[str, Any] = field(default_factory=dict)

    def name(self, kind: str) -> str:
        return f"{kind}-{next(self._names)}-{id(self) % 10_000}"

    def deploy(self, module: str, *, handler: str | None = None, variables: Any = None, **configuration: Any) -> str:
        """Deploy one of tests/support/lambda_handlers until the end of the test."""
        name = self.name(module.replace("_", "-"))
        code: Any = configuration.pop("Code", None) or {"ZipFile": handler_zip(module)}
        self.lambda_.create_function(
            FunctionName=name,
            Runtime="python3.13",
            Role=ROLE,
            Handler=handler or f"{module}.handler",
            Code=code,
            LoggingConfig=configuration.pop("LoggingConfig", {"LogFormat": "JSON"}),
            Environment={"Variables": {"PUPPETEER": self.puppeteer.address, **(variables or {})}},
            **configuration,
        )
        self._deployed.append(lambda: self.lambda_.delete_function(FunctionName=name))
        return name

    def invoke(self, name: str, event: Any = None, **options: Any) -> InvocationResponseTypeDef:
        payload = json.dumps({} if event is None else event).encode()
        answer: Any = self.lambda_.invoke(FunctionName=name, Payload=payload, **options)
        # A stream that nobody reads would keep its connection.
        answer["Payload"] = io.BytesIO(answer["Payload"].read())
        return answer  # type: ignore[no-any-return]

    def call(self, name: str, event: Any = None, **options: Any) -> Any:
        """Return the answer of a function that must succeed."""
        answer = self.invoke(name, event, **options)
        payload = json.load(answer["Payload"])
        assert "FunctionError" not in answer, payload
        return payload

    def fail(self, name: str, event: Any = None) -> dict[str, Any]:
        """Return the error of a function that must fail."""
        answer = self.invoke(name, event)
        assert answer["FunctionError"] == "Unhandled"
        error: dict[str, Any] = json.load(answer["Payload"])
        return error

    def create_queue(self, **attributes: str) -> tuple[str, str]:
        """Return a new queue's URL and ARN."""
        sqs = self.client("sqs")
        url = sqs.create_queue(QueueName=self.name("queue"), Attributes=attributes)["QueueUrl"]
        self._deployed.append(lambda: sqs.delete_queue(QueueUrl=url))
        answer = sqs.get_queue_attributes(QueueUrl=url, AttributeNames=["QueueArn"])
        return url, answer["Attributes"]["QueueArn"]

    def map(self, queue_arn: str, name: str, **settings: Any) -> str:
        """Return a new event source mapping's UUID."""
        uuid = self.lambda_.create_event_source_mapping(EventSourceArn=queue_arn, FunctionName=name, **settings)["UUID"]
        self._deployed.append(lambda: self.lambda_.delete_event_source_mapping(UUID=uuid))
        return uuid

    def receive(self, url: str) -> list[Any]:
        messages: list[Any] = (
            self.client("sqs")
            .receive_message(QueueUrl=url, MaxNumberOfMessages=10, WaitTimeSeconds=5)
            .get("Messages", [])
        )
        return messages

    def log(self, name: str) -> list[str]:
        """Return all that a function has logged."""
        assert self.service.idle(PATIENCE)
        answer = self.client("logs").filter_log_events(logGroupName=f"/aws/lambda/{name}", limit=10_000)
        return [event["message"] for event in answer["events"]]

    def platform_records(self, name: str) -> list[dict[str, Any]]:
        """Return what Lambda itself has logged of it."""
        return [json.loads(line) for line in self.log(name) if line.startswith('{"time":')]

    def undeploy(self) -> None:
        while self._deployed:
            self._deployed.pop()()

    def close(self) -> None:
        self.puppeteer.close()
        for one in self._clients.values():
            one.close()


@contextmanager
def running_stand(moto: str, home: Path, **settings: Any) -> Iterator[Stand]:
    """Run a service with settings of a test's own."""
    front = Front(0, moto)
    made = ServiceSettings(moto_endpoint=moto, public_endpoint=front.endpoint, home=home)
    made = replace(made, **{"retry_delays": (0.05, 0.1), "throttle_delay": 0.05, "refresh_seconds": 0.2, **settings})
    service = LambdaService(made)
    stand = Stand(made, service, front, Puppeteer())

    def control(request: Request) -> Response:
        stand.controlled.append(request)
        return Response(200, b'{"heard": true}')

    service.start()
    front.start(service, control)
    try:
        yield stand
    finally:
        service.stop()
        front.stop()
        stand.close()


@pytest.fixture(scope="session")
def stand_moto() -> Iterator[str]:
    with running_moto() as endpoint:
        yield endpoint


@pytest.fixture(scope="session")
def _shared_stand(stand_moto: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Stand]:
    with running_stand(stand_moto, tmp_path_factory.mktemp("stand")) as stand:
        yield stand


@pytest.fixture
def stand(_shared_stand: Stand) -> Iterator[Stand]:
    """Share one service among tests, with a puppeteer of the test's own."""
    _shared_stand.puppeteer = Puppeteer()
    yield _shared_stand
    _shared_stand.undeploy()
    _shared_stand.puppeteer.close()


@pytest.fixture
def own_stand(stand_moto: str, tmp_path: Path) -> Iterator[Callable[..., Stand]]:
    """Make a service with settings of a test's own, beside the shared moto."""
    with ExitStack() as running:

        def make(**settings: Any) -> Stand:
            made = running.enter_context(running_stand(stand_moto, tmp_path, **settings))
            running.callback(made.undeploy)
            return made

        yield make
