"""The Lambda service starts, reuses and ends its processes as Lambda does."""

from __future__ import annotations

import json
import os
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from pathlib import Path
from typing import TYPE_CHECKING, Any

import psutil
import pytest
from botocore.exceptions import ClientError

if TYPE_CHECKING:
    from concurrent.futures import Future

    from tests.support.lambda_stand import Stand, Told

    OwnStand = Callable[..., Stand]

pytest_plugins = ["tests.support.lambda_stand"]

PATIENCE = 20


def ended(pid: int) -> bool:
    """Say whether a process ends soon."""
    deadline = time.monotonic() + PATIENCE
    while time.monotonic() < deadline:
        try:
            process = psutil.Process(pid)
            # An orphan stays in the table until somebody reaps it; the service's own children it reaps itself, and
            # waiting for them here would take the exit status away from it.
            if process.status() == psutil.STATUS_ZOMBIE and process.ppid() != os.getpid():
                return True
        except psutil.NoSuchProcess:
            return True
        time.sleep(0.01)
    return False


def throttled(stand: Stand, name: str) -> dict[str, Any]:
    with pytest.raises(ClientError) as caught:
        stand.invoke(name)
    return dict(caught.value.response)


class Calls:
    """Run synchronous invocations in threads."""

    def __init__(self, stand: Stand) -> None:
        self._stand = stand
        self._pool = ThreadPoolExecutor(10)

    def one(self, name: str, event: Any = None) -> Future[Any]:
        return self._pool.submit(self._stand.invoke, name, event)

    def error_of(self, call: Future[Any]) -> dict[str, Any]:
        error: dict[str, Any] = json.load(call.result(PATIENCE)["Payload"])
        return error


@pytest.fixture
def calls(stand: Stand) -> Calls:
    return Calls(stand)


def run(stand: Stand, calls: Calls, name: str) -> Told:
    """Run one invocation of the puppet from its start to its answer."""
    call = calls.one(name)
    told = stand.puppeteer.next()
    told.reply(**{"return": None})
    call.result(PATIENCE)
    return told


def test_a_function_sees_lambdas_variables_and_its_own(stand: Stand) -> None:
    name = stand.deploy("surroundings", variables={"COLOUR": "green"}, MemorySize=512)
    found = stand.call(name)
    environment = found["environment"]
    expected = {
        "COLOUR": "green",
        "AWS_LAMBDA_FUNCTION_NAME": name,
        "AWS_LAMBDA_FUNCTION_VERSION": "$LATEST",
        "AWS_LAMBDA_FUNCTION_MEMORY_SIZE": "512",
        "AWS_LAMBDA_LOG_GROUP_NAME": f"/aws/lambda/{name}",
        "AWS_LAMBDA_INITIALIZATION_TYPE": "on-demand",
        "AWS_EXECUTION_ENV": "AWS_Lambda_python3.13",
        "AWS_REGION": "us-east-1",
        "AWS_DEFAULT_REGION": "us-east-1",
        "AWS_ENDPOINT_URL": stand.endpoint,
        "LAMBDA_TASK_ROOT": found["cwd"],
        "_HANDLER": "surroundings.handler",
        "AWS_LAMBDA_LOG_FORMAT": "JSON",
        "TZ": ":UTC",
    }
    assert {key: environment.get(key) for key in expected} == expected
    assert environment["_X_AMZN_TRACE_ID"].startswith("Root=1-")
    assert "[$LATEST]" in environment["AWS_LAMBDA_LOG_STREAM_NAME"]
    assert {"AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY", "AWS_SESSION_TOKEN", "LAMBDA_RUNTIME_DIR"} <= set(environment)
    assert ":" in environment["AWS_LAMBDA_RUNTIME_API"]


def test_nothing_else_of_the_developers_shell_reaches_a_function(stand: Stand, monkeypatch: pytest.MonkeyPatch) -> None:
    name = stand.deploy("surroundings")
    for variable in ("AWS_PROFILE", "SIGNALBOX_SECRET", "PYTHONSTARTUP", "VIRTUAL_ENV", "HTTP_PROXY"):
        monkeypatch.setenv(variable, "leaked")
    monkeypatch.setenv("SSL_CERT_FILE", "/a/bundle.pem")
    environment = stand.call(name)["environment"]
    assert "leaked" not in environment.values()
    assert environment["SSL_CERT_FILE"] == "/a/bundle.pem"
    assert environment["HOME"] == environment["TMPDIR"]
    assert Path(environment["HOME"]).is_relative_to(stand.settings.home)


def test_the_functions_own_variables_win_over_what_the_laptop_adds(own_stand: OwnStand) -> None:
    stand = own_stand(extra_environment={"SIGNALBOX_DATABASE_URL": "the laptop's"})
    name = stand.deploy("surroundings", variables={"SIGNALBOX_DATABASE_URL": "the template's"})
    assert stand.call(name)["environment"]["SIGNALBOX_DATABASE_URL"] == "the template's"


def test_a_variable_that_lambda_reserves_is_refused_by_name(stand: Stand) -> None:
    name = stand.deploy("echo", variables={"AWS_REGION": "eu-west-1", "_HANDLER": "x"})
    refusal = throttled(stand, name)["Error"]
    assert refusal["Code"] == "InvalidParameterValueException"
    assert "AWS_REGION, _HANDLER" in refusal["Message"]


def test_layers_follow_the_functions_code_on_the_path(stand: Stand) -> None:
    from tests.support.lambda_stand import HANDLERS
    from tests.support.zips import zipped

    layers = {
        "upper": {"python/shared.py": "WHERE = 'upper'", "python/both.py": "WHERE = 'upper'"},
        "lower": {"python/shared.py": "WHERE = 'lower'", "python/deep.py": "WHERE = 'lower'"},
    }
    arns = [
        stand.lambda_.publish_layer_version(LayerName=layer, Content={"ZipFile": zipped(files)})["LayerVersionArn"]
        for layer, files in layers.items()
    ]
    code = {"surroundings.py": (HANDLERS / "surroundings.py").read_text(), "both.py": "WHERE = 'function'"}
    name = stand.deploy("surroundings", Code={"ZipFile": zipped(code)}, Layers=arns)
    found = stand.call(name, {"modules": ["shared", "deep", "both"]})
    assert found["modules"] == {"shared": "upper", "deep": "lower", "both": "function"}


def test_a_function_finds_nothing_of_this_repository_but_what_was_deployed(stand: Stand) -> None:
    name = stand.deploy("surroundings")
    path = [Path(folder) for folder in stand.call(name)["path"]]
    assert Path(__file__).parents[2] not in path
    assert stand.fail(name, {"modules": ["signalbox_laptop"]})["errorMessage"] == "No module named 'signalbox_laptop'"
    assert any(folder.name == "site-packages" for folder in path)


def test_code_that_lies_in_a_bucket_is_run(stand: Stand) -> None:
    from tests.support.lambda_stand import handler_zip

    s3 = stand.client("s3")
    s3.create_bucket(Bucket="artefacts")
    s3.put_object(Bucket="artefacts", Key="echo.zip", Body=handler_zip("echo"))
    name = stand.deploy("echo", Code={"S3Bucket": "artefacts", "S3Key": "echo.zip"})
    assert stand.call(name, "hello")["event"] == "hello"
    assert [bucket["Name"] for bucket in s3.list_buckets()["Buckets"]] == ["artefacts"]
    s3.delete_object(Bucket="artefacts", Key="echo.zip")
    s3.delete_bucket(Bucket="artefacts")


def test_a_warm_process_is_used_again(stand: Stand) -> None:
    name = stand.deploy("echo")
    assert len({stand.call(name)["pid"] for _ in range(5)}) == 1


def test_five_parallel_invocations_take_five_processes_and_reuse_the_last_ended(stand: Stand, calls: Calls) -> None:
    name = stand.deploy("puppet")
    under_way = [calls.one(name, number) for number in range(5)]
    told = {one.event: one for one in (stand.puppeteer.next() for _ in range(5))}
    assert len({one.pid for one in told.values()}) == 5
    for number, call in enumerate(under_way):
        told[number].reply(**{"return": None})
        call.result(PATIENCE)
    assert run(stand, calls, name).pid == told[4].pid


def test_timed_out_process_is_killed_and_next_invocation_gets_another(stand: Stand, calls: Calls) -> None:
    name = stand.deploy("puppet", Timeout=1)
    call = calls.one(name)
    told = stand.puppeteer.next()
    told.reply(spawn=True)
    child = told.hear()["child"]
    error = calls.error_of(call)
    assert error == {
        "errorType": "Sandbox.Timedout",
        "errorMessage": f"RequestId: {told.said['request_id']} Error: Task timed out after 1.00 seconds",
    }
    assert call.result()["FunctionError"] == "Unhandled"
    assert ended(told.pid)
    assert ended(child), "what the handler started must die with it"
    assert run(stand, calls, name).pid != told.pid


def test_a_process_that_is_killed_in_the_middle_is_an_exit_error(stand: Stand, calls: Calls) -> None:
    name = stand.deploy("puppet")
    call = calls.one(name)
    told = stand.puppeteer.next()
    psutil.Process(told.pid).kill()
    assert calls.error_of(call) == {
        "errorType": "Runtime.ExitError",
        "errorMessage": f"RequestId: {told.said['request_id']} Error: Runtime exited with error: signal: killed",
    }
    assert run(stand, calls, name).pid != told.pid


@pytest.mark.parametrize(
    ("code", "how"), [(3, "Runtime exited with error: exit status 3"), (0, "Runtime exited without providing a reason")]
)
def test_a_handler_that_ends_its_process_is_an_exit_error(stand: Stand, calls: Calls, code: int, how: str) -> None:
    name = stand.deploy("puppet")
    call = calls.one(name)
    stand.puppeteer.next().reply(exit=code)
    error = calls.error_of(call)
    assert error["errorType"] == "Runtime.ExitError"
    assert error["errorMessage"].endswith(how)


def test_a_process_that_died_while_idle_is_replaced_unnoticed(stand: Stand) -> None:
    name = stand.deploy("echo")
    pid = stand.call(name)["pid"]
    psutil.Process(pid).kill()
    assert ended(pid)
    assert stand.call(name)["pid"] != pid


@pytest.mark.parametrize(
    ("module", "handler", "error_type", "words"),
    [
        ("broken_import", "broken_import.handler", "Runtime.ImportModuleError", "No module named 'a_module"),
        ("echo", "nothing_here.handler", "Runtime.ImportModuleError", "No module named 'nothing_here'"),
        ("echo", "echo.nothing", "Runtime.HandlerNotFound", "Handler 'nothing' missing on module 'echo'"),
        ("echo", "echo", "Runtime.MalformedHandlerName", "Bad handler 'echo'"),
        ("dies_at_start", "dies_at_start.handler", "Runtime.ExitError", "exit status 7"),
    ],
)
def test_a_function_that_can_not_start_says_why_each_time(
    stand: Stand, module: str, handler: str, error_type: str, words: str
) -> None:
    name = stand.deploy(module, handler=handler)
    for _ in range(2):
        error = stand.fail(name)
        assert error["errorType"] == error_type
        assert words in error["errorMessage"]


def test_a_function_that_was_mended_starts(stand: Stand) -> None:
    name = stand.deploy("echo", handler="echo.nothing")
    assert stand.fail(name)["errorType"] == "Runtime.HandlerNotFound"
    stand.lambda_.update_function_configuration(FunctionName=name, Handler="echo.handler")
    assert stand.call(name, 1)["event"] == 1


def test_an_initialisation_over_its_time_begins_again_within_the_functions_own(own_stand: OwnStand) -> None:
    stand = own_stand(init_seconds=0.2)
    name = stand.deploy("slow_start", variables={"START_SECONDS": "0.5"}, Timeout=5)
    assert stand.call(name) == "started"
    records = stand.platform_records(name)
    assert [record["type"] for record in records].count("platform.initStart") == 2
    assert "initDurationMs" not in records[-1]["record"]["metrics"]


def test_an_initialisation_that_never_ends_is_a_time_out(own_stand: OwnStand) -> None:
    stand = own_stand(init_seconds=0.1)
    name = stand.deploy("slow_start", variables={"START_SECONDS": "60"}, Timeout=1)
    error = stand.fail(name)
    assert error["errorType"] == "Sandbox.Timedout"
    assert error["errorMessage"].endswith("Task timed out after 1.00 seconds")
    assert stand.service.status()["environments"] == 0


def test_a_changed_configuration_closes_the_old_processes(stand: Stand) -> None:
    name = stand.deploy("echo")
    old = stand.call(name)["pid"]
    stand.lambda_.update_function_configuration(FunctionName=name, Environment={"Variables": {"A": "B"}})
    assert stand.call(name)["pid"] != old
    assert ended(old)


def test_changed_code_is_run_at_once(stand: Stand) -> None:
    from tests.support.zips import zipped

    name = stand.deploy("echo")
    stand.call(name)
    changed = zipped({"echo.py": "def handler(event, context):\n    return 'changed'\n"})
    stand.lambda_.update_function_code(FunctionName=name, ZipFile=changed)
    assert stand.call(name) == "changed"


def test_change_that_bypassed_the_front_shows_once_its_cache_is_stale(own_stand: OwnStand, stand_moto: str) -> None:
    from tests.support.lambda_stand import client

    stand = own_stand(refresh_seconds=0)
    name = stand.deploy("surroundings")
    stand.call(name)
    with closing(client("lambda", stand_moto)) as behind:
        behind.update_function_configuration(FunctionName=name, Environment={"Variables": {"COLOUR": "red"}})
    assert stand.call(name)["environment"]["COLOUR"] == "red"


def test_an_idle_process_is_closed_after_its_time(own_stand: OwnStand) -> None:
    stand = own_stand(idle_seconds=0.1)
    pid = stand.call(stand.deploy("echo"))["pid"]
    assert ended(pid)
    assert stand.service.status()["environments"] == 0


def test_reserved_concurrency_of_one_throttles_the_second(stand: Stand, calls: Calls) -> None:
    name = stand.deploy("puppet")
    stand.lambda_.put_function_concurrency(FunctionName=name, ReservedConcurrentExecutions=1)
    first = calls.one(name)
    told = stand.puppeteer.next()
    refusal = throttled(stand, name)
    assert refusal["ResponseMetadata"]["HTTPStatusCode"] == 429
    assert refusal["Error"]["Code"] == "TooManyRequestsException"
    assert refusal["Reason"] == "ReservedFunctionConcurrentInvocationLimitExceeded"
    told.reply(**{"return": None})
    first.result(PATIENCE)
    assert run(stand, calls, name).pid == told.pid


def test_reserved_concurrency_of_none_lets_nothing_through(stand: Stand) -> None:
    name = stand.deploy("echo")
    stand.lambda_.put_function_concurrency(FunctionName=name, ReservedConcurrentExecutions=0)
    assert throttled(stand, name)["Error"]["Code"] == "TooManyRequestsException"
    stand.lambda_.delete_function_concurrency(FunctionName=name)
    assert stand.call(name, 1)["event"] == 1


def test_the_account_throttles_functions_without_a_reservation(own_stand: OwnStand) -> None:
    stand = own_stand(account_concurrency=2)
    calls = Calls(stand)
    reserved, free = stand.deploy("puppet"), stand.deploy("puppet")
    stand.lambda_.put_function_concurrency(FunctionName=reserved, ReservedConcurrentExecutions=1)
    run(stand, calls, reserved)
    under_way = calls.one(free)
    told = stand.puppeteer.next()
    assert throttled(stand, free)["Reason"] == "ConcurrentInvocationLimitExceeded"
    run(stand, calls, reserved)
    told.reply(**{"return": None})
    under_way.result(PATIENCE)


def test_stop_kills_what_runs_and_leaves_nothing(stand_moto: str, tmp_path: Path) -> None:
    from tests.support.lambda_stand import running_stand

    before = set(psutil.Process().children(recursive=True))
    with running_stand(stand_moto, tmp_path) as stand:
        calls = Calls(stand)
        idle, busy = stand.deploy("echo"), stand.deploy("puppet", Timeout=60)
        _, arn = stand.create_queue()
        stand.map(arn, busy)
        stand.call(idle)
        calls.one(busy)
        told = stand.puppeteer.next()
        told.reply(spawn=True)
        told.hear()
        began = time.monotonic()
        stand.service.stop()
        assert time.monotonic() - began < 3
        assert set(psutil.Process().children(recursive=True)) <= before
        assert list((tmp_path / "tmp").iterdir()) == []
        stand.undeploy()


def test_nothing_goes_on_between_two_invocations(stand: Stand, calls: Calls) -> None:
    name = stand.deploy("puppet")
    told = run(stand, calls, name)
    deadline = time.monotonic() + PATIENCE
    while psutil.Process(told.pid).status() != psutil.STATUS_STOPPED:
        assert time.monotonic() < deadline
        time.sleep(0.01)
    assert run(stand, calls, name).pid == told.pid
