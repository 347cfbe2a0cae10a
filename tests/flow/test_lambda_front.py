"""The endpoint answers what is its own, and passes all else to moto and back unchanged."""

from __future__ import annotations

import http.client
import json
import socket
import threading
from contextlib import closing
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

import pytest
from botocore.exceptions import ClientError

from signalbox_laptop.lambda_api.endpoint import Front, PortBusy

if TYPE_CHECKING:
    from tests.support.lambda_stand import Stand

pytest_plugins = ["tests.support.lambda_stand"]


def connection(stand: Stand) -> http.client.HTTPConnection:
    return http.client.HTTPConnection(urlsplit(stand.endpoint).netloc, timeout=20)


def test_queues_work_through_it_and_their_urls_lead_back_to_it(stand: Stand) -> None:
    sqs = stand.client("sqs")
    url, _ = stand.create_queue()
    assert url.startswith(stand.endpoint)
    sqs.send_message(QueueUrl=url, MessageBody="a & b < ü", MessageGroupId="tenant")
    [message] = stand.receive(url)
    assert message["Body"] == "a & b < ü"


def test_objects_work_through_it(stand: Stand) -> None:
    s3 = stand.client("s3")
    bucket, key, body = stand.name("bucket"), "a folder/ü+%2F&.bin", bytes(range(256)) * 20_000
    s3.create_bucket(Bucket=bucket)
    s3.put_object(Bucket=bucket, Key=key, Body=body, Metadata={"colour": "green"})
    head = s3.head_object(Bucket=bucket, Key=key)
    assert (head["ContentLength"], head["Metadata"]) == (len(body), {"colour": "green"})
    answer = s3.get_object(Bucket=bucket, Key=key)
    assert answer["Body"].read() == body
    assert s3.get_object(Bucket=bucket, Key=key, Range="bytes=1-3")["Body"].read() == body[1:4]
    [listed] = s3.list_objects_v2(Bucket=bucket)["Contents"]
    assert listed["Key"] == key
    with pytest.raises(ClientError, match="404"):
        s3.head_object(Bucket=bucket, Key="nothing")
    s3.delete_object(Bucket=bucket, Key=key)
    s3.delete_bucket(Bucket=bucket)


def test_a_large_upload_in_parts_works_through_it(stand: Stand, tmp_path: Path) -> None:
    s3, bucket = stand.client("s3"), stand.name("bucket")
    s3.create_bucket(Bucket=bucket)
    file = tmp_path / "large"
    file.write_bytes(b"0123456789" * 1_200_000)
    s3.upload_file(str(file), bucket, "large")
    assert s3.head_object(Bucket=bucket, Key="large")["ContentLength"] == 12_000_000
    s3.delete_object(Bucket=bucket, Key="large")
    s3.delete_bucket(Bucket=bucket)


def test_rules_stacks_logs_and_secrets_work_through_it(stand: Stand) -> None:
    name = stand.name("thing")
    stand.client("events").put_rule(Name=name, ScheduleExpression="rate(5 minutes)")
    assert stand.client("events").describe_rule(Name=name)["ScheduleExpression"] == "rate(5 minutes)"
    stand.client("events").delete_rule(Name=name)

    template = json.dumps({"Resources": {"Queue": {"Type": "AWS::SQS::Queue", "Properties": {"QueueName": name}}}})
    stacks = stand.client("cloudformation")
    stacks.create_stack(StackName=name, TemplateBody=template)
    assert stacks.describe_stacks(StackName=name)["Stacks"][0]["StackStatus"] == "CREATE_COMPLETE"
    stacks.delete_stack(StackName=name)

    stand.client("logs").create_log_group(logGroupName=name)
    assert stand.client("logs").describe_log_groups(logGroupNamePrefix=name)["logGroups"]
    stand.client("logs").delete_log_group(logGroupName=name)

    stand.client("secretsmanager").create_secret(Name=name, SecretString="hush")
    assert stand.client("secretsmanager").get_secret_value(SecretId=name)["SecretString"] == "hush"


def test_a_long_poll_holds_up_nobody_else(stand: Stand) -> None:
    url, _ = stand.create_queue()
    sqs, got = stand.client("sqs"), []

    def poll() -> None:
        got.append(sqs.receive_message(QueueUrl=url, WaitTimeSeconds=15).get("Messages"))

    pollers = [threading.Thread(target=poll) for _ in range(5)]
    for poller in pollers:
        poller.start()
    name = stand.deploy("echo")
    assert stand.call(name, 1)["event"] == 1
    assert all(poller.is_alive() for poller in pollers)
    for number in range(5):
        sqs.send_message(QueueUrl=url, MessageBody=str(number))
    for poller in pollers:
        poller.join(20)
    assert len([messages for messages in got if messages]) >= 1
    assert not any(poller.is_alive() for poller in pollers)


def test_control_calls_go_to_the_registered_handler(stand: Stand) -> None:
    with closing(connection(stand)) as client:
        client.request("POST", "/_signalbox/tick?at=now", body=b'{"rules": null}')
        answer = client.getresponse()
        assert json.loads(answer.read()) == {"heard": True}
    request = stand.controlled[-1]
    assert (request.method, request.path, request.query) == ("POST", "/_signalbox/tick", {"at": "now"})
    assert request.body == b'{"rules": null}'


def test_one_connection_serves_many_requests(stand: Stand) -> None:
    with closing(connection(stand)) as client:
        client.connect()
        first = client.sock
        for _ in range(3):
            client.request("GET", "/_signalbox/status")
            client.getresponse().read()
        assert client.sock is first


def test_a_body_in_chunks_is_taken(stand: Stand) -> None:
    with closing(connection(stand)) as client:
        client.request("POST", "/_signalbox/tick", body=iter([b"one", b"two"]), encode_chunked=True)
        client.getresponse().read()
    assert stand.controlled[-1].body == b"onetwo"


def test_a_client_that_hangs_up_in_the_middle_hurts_nobody(stand: Stand) -> None:
    name = stand.deploy("puppet")
    client = connection(stand)
    client.request("POST", f"/2015-03-31/functions/{name}/invocations", body=b"{}")
    told = stand.puppeteer.next()
    client.close()
    told.reply(**{"return": None})
    assert stand.service.idle(20)
    echo = stand.deploy("echo")
    assert stand.call(echo, 1)["event"] == 1


def test_what_is_deployed_through_it_is_seen_at_once(stand: Stand) -> None:
    name = stand.deploy("surroundings")
    for colour in ("red", "green", "blue"):
        stand.lambda_.update_function_configuration(FunctionName=name, Environment={"Variables": {"COLOUR": colour}})
        assert stand.call(name)["environment"]["COLOUR"] == colour


def test_a_busy_port_is_named_with_what_to_do() -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        with pytest.raises(PortBusy, match=rf"port {port} on 127\.0\.0\.1 is in use.*--port"):
            Front(port, "http://127.0.0.1:9")


def test_it_listens_on_loopback_only() -> None:
    front = Front(0, "http://127.0.0.1:9")
    try:
        assert urlsplit(front.endpoint).hostname == "127.0.0.1"
        assert front._server.server_address[0] == "127.0.0.1"
    finally:
        front.stop()


def test_a_moto_that_is_gone_is_a_clear_answer(stand: Stand) -> None:
    with socket.create_server(("127.0.0.1", 0)) as closed:
        nowhere = f"http://127.0.0.1:{closed.getsockname()[1]}"
    front = Front(0, nowhere)
    front.start(stand.service, lambda _request: pytest.fail("not a control call"))
    try:
        with closing(http.client.HTTPConnection(urlsplit(front.endpoint).netloc, timeout=20)) as client:
            client.request("GET", "/")
            answer = client.getresponse()
            assert answer.status == 503
            assert nowhere in json.loads(answer.read())["message"]
    finally:
        front.stop()
