"""The audit checks pinned requirements against a package index, and tells what it found and could not check."""

from __future__ import annotations

import json
from collections.abc import Iterator
from datetime import date
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Thread

import pytest

from checks import audit
from checks.audit import Allowed, Fault, ask, judge, pinned, report

TODAY = date(2026, 3, 29)
FAULT = Fault("old", "1.0", ("PYSEC-1", "CVE-1"), ("1.1",))
KNOWN = {
    "/old/1.0/json": {"vulnerabilities": [{"id": "PYSEC-1", "aliases": ["CVE-1"], "fixed_in": ["1.1"]}]},
    "/good/2.0/json": {"vulnerabilities": []},
    "/regretted/1.0/json": {"vulnerabilities": [{"id": "PYSEC-2", "withdrawn": "2026-01-01T00:00:00Z"}]},
    "/mute/1.0/json": {"info": {}},
}


class _Index(BaseHTTPRequestHandler):
    def do_GET(self) -> None:
        told = KNOWN.get(self.path)
        self.send_response(200 if told is not None else 404)
        self.end_headers()
        self.wfile.write(json.dumps(told).encode())

    def log_message(self, *_: object) -> None:
        pass


@pytest.fixture(scope="module")
def index() -> Iterator[str]:
    server = ThreadingHTTPServer(("127.0.0.1", 0), _Index)
    Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01}, daemon=True).start()
    yield f"http://127.0.0.1:{server.server_port}"
    server.shutdown()
    server.server_close()


def allowed(until: date) -> Allowed:
    return Allowed("old", "CVE-1", "nothing here parses what strangers send", until)


def test_a_known_fault_is_found_by_each_of_its_names(index: str) -> None:
    assert ask(index, ("old", "1.0")) == [FAULT]
    assert ask(index, ("good", "2.0")) == []


def test_a_fault_that_was_taken_back_is_none(index: str) -> None:
    assert ask(index, ("regretted", "1.0")) == []


@pytest.mark.parametrize("name", ["mute", "unknown"])
def test_an_index_that_does_not_say_is_not_taken_for_good_news(index: str, name: str) -> None:
    assert ask(index, (name, "1.0")) is None


def test_unreachable_index_is_reported_as_having_checked_nothing(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("PIP_INDEX_URL", "http://127.0.0.1:1/simple/")
    assert audit.main() == 0
    assert capsys.readouterr().out.startswith("not checked: the package index does not say")


def test_a_fault_fails_the_check_and_what_was_not_checked_is_named(capsys: pytest.CaptureFixture[str]) -> None:
    assert report({("old", "1.0"): [FAULT], ("mute", "1.0"): None}, [], TODAY) == 1
    assert capsys.readouterr().out.splitlines() == [
        "not checked: mute 1.0",
        "fault: old 1.0: PYSEC-1 or CVE-1; mended in 1.1",
        "1 of 2 pinned versions checked, 1 findings",
    ]


def test_what_is_allowed_is_no_finding_until_its_day() -> None:
    assert list(judge([FAULT], [allowed(date(2026, 4, 1))], TODAY)) == []
    (line,) = judge([FAULT], [allowed(TODAY)], TODAY)
    assert "allowed until 2026-03-29: nothing here parses" in line


def test_an_allowance_that_nothing_needs_is_a_finding() -> None:
    (line,) = judge([], [allowed(date(2026, 4, 1))], TODAY)
    assert line.endswith("take it out")


def test_pins_are_read_with_their_extras_and_markers(tmp_path: Path) -> None:
    path = tmp_path / "requirements.txt"
    path.write_text(
        "one[two]==1.0 ; python_version < '4' \\\n    --hash=sha256:00\n    # via x==3\nthree==4.5.post1 \\\n"
    )
    assert set(pinned([path])) == {("one", "1.0"), ("three", "4.5.post1")}


def test_the_list_of_what_is_allowed_can_be_read() -> None:
    for one in audit.read_allowed(audit.ROOT / "checks" / "allowed.toml"):
        assert one.reason
        assert isinstance(one.until, date)
