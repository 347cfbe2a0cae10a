"""The HTTP API of the laptop's stack answers over a real socket, as docs/http-api.md says."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from collections.abc import Iterator
from typing import Any

import pytest
import urllib3

from signalbox import ApiProblem, HttpClient
from tests.support.command_line import Signalbox, detached_stack
from tests.support.template import ROOT

PAGE = (ROOT / "docs" / "http-api.md").read_text("utf-8")
CURLS = re.findall(r"^\$ (curl (?:.*\\\n)*.*)$", PAGE, re.MULTILINE)


@pytest.fixture(scope="session")
def stack(tmp_path_factory: pytest.TempPathFactory) -> Iterator[dict[str, Any]]:
    with detached_stack(tmp_path_factory) as announced:
        yield announced


def ask(stack: dict[str, Any], method: str, path: str, token: str | None = None, **options: Any) -> Any:
    headers = {"authorization": f"Bearer {token or stack['token']}"}
    return urllib3.request(method, stack["api"] + path, headers=headers, timeout=60, **options)


def test_page_has_examples() -> None:
    assert len(CURLS) > 5


@pytest.mark.skipif(shutil.which("curl") is None, reason="needs curl, which `apt-get install curl` brings")
@pytest.mark.parametrize("line", CURLS)
def test_example_of_the_page_is_answered(stack: dict[str, Any], line: str) -> None:
    around = {**os.environ, "API": stack["api"], "TOKEN": stack["token"]}
    ran = subprocess.run(
        ["bash", "-c", f"{line} --fail-with-body"], env=around, capture_output=True, text=True, check=False
    )
    assert ran.returncode == 0, ran.stdout


def test_token_opens_the_api_until_it_is_revoked(stack: dict[str, Any]) -> None:
    signalbox = Signalbox({"SIGNALBOX_HOME": stack["home"]})
    token = signalbox("tokens", "create", "grafana", "--days", "9").out.strip()
    assert [ask(stack, *request, token).status for request in (("GET", "/v1/jobs"), ("POST", "/v1/jobs"))] == [200, 403]
    assert "grafana" in signalbox("tokens").out
    assert signalbox("tokens", "revoke", "grafana").out == "token grafana is revoked\n"
    assert ask(stack, "GET", "/v1/jobs", token).status == 401


def test_body_and_query_come_through_the_front_as_they_are(stack: dict[str, Any]) -> None:
    job = {"job_type": "run_task", "payload": {"task": "sweep_runs"}, "tags": ["späť & 100 %"], "delay_seconds": 600}
    made = ask(stack, "POST", "/v1/jobs", json=job).json()
    found = ask(stack, "GET", "/v1/jobs", fields={"tag": "späť & 100 %"}).json()
    assert [one["id"] for one in found["jobs"]] == [made["id"]]
    assert ask(stack, "POST", "/v1/jobs", body=b"\xff\x00{").status == 400
    assert ask(stack, "POST", "/v1/jobs", body=b"x" * 11_000_000).status == 413


def test_python_of_the_page_runs(stack: dict[str, Any], monkeypatch: pytest.MonkeyPatch) -> None:
    [code] = re.findall(r"```python\n(.*?)```", PAGE, re.DOTALL)
    monkeypatch.setenv("API", stack["api"])
    monkeypatch.setenv("TOKEN", stack["token"])
    names: dict[str, Any] = {}
    exec(compile(code, "docs/http-api.md", "exec"), names)
    assert names["api"].job(names["job"]["id"])["job"]["tags"] == ["night"]


def test_client_pages_through_jobs_and_names_what_is_refused(stack: dict[str, Any]) -> None:
    api = HttpClient(stack["api"], stack["token"])
    made = [api.submit("run_task", {"task": "sweep_runs"}, tags=["pages"], delay_seconds=600)["id"] for _ in range(3)]
    assert [job["id"] for job in api.jobs(tag="pages", limit=2)] == made[::-1]
    with pytest.raises(ApiProblem, match=r"did you mean 'lane'\?") as caught:
        api.submit("run_task", {"task": "sweep_runs"}, lanes="low")
    assert (caught.value.status, caught.value.errors[0]["field"]) == (422, "lanes")
    with pytest.raises(ApiProblem, match="does not answer"):
        HttpClient("http://127.0.0.1:1", "sbx_none").job("1")
