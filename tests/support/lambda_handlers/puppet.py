"""Do what the test says, when it says so: each invocation connects to the test, tells, and obeys the reply."""

import json
import os
import socket
import subprocess
import sys
from typing import Any, TextIO


def handler(event: Any, context: Any) -> Any:
    host, port = os.environ["PUPPETEER"].split(":")
    with socket.create_connection((host, int(port))) as connection:
        told = {"pid": os.getpid(), "event": event, "request_id": context.aws_request_id}
        stream = connection.makefile("rw")
        print(json.dumps(told), file=stream, flush=True)
        reply = json.loads(stream.readline() or '{"raise": "the test hung up"}')
        return _obey(reply, stream)


def _obey(reply: dict[str, Any], stream: TextIO) -> Any:
    if "raise" in reply:
        raise ValueError(reply["raise"])
    if "exit" in reply:
        os._exit(reply["exit"])
    if "spawn" in reply:
        child = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(600)"])
        print(json.dumps({"child": child.pid}), file=stream, flush=True)
        stream.readline()
    return reply.get("return")
