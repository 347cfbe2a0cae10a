"""Drive headless Chromium by WebDriver, the protocol of its chromedriver: JSON over HTTP, on loopback."""

from __future__ import annotations

import base64
import json
import re
import shutil
import subprocess
import tempfile
import time
import urllib.error
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

_TRIES = 5
_FLAGS = (
    "--headless", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--hide-scrollbars",
    "--disable-background-networking", "--disable-component-update", "--disable-sync", "--disable-dev-shm-usage",
)  # fmt: skip
_ELEMENT = "element-6066-11e4-a52e-4f735466cecf"
_PATIENCE = 15.0


class Browser:
    """Hold one window of a browser."""

    def __init__(self, driver: str, session: str) -> None:
        self._session = f"{driver}/session/{session}"

    def open(self, address: str) -> None:
        _call("POST", f"{self._session}/url", {"url": address})

    @property
    def address(self) -> str:
        return str(_call("GET", f"{self._session}/url"))

    @property
    def cookies(self) -> list[dict[str, Any]]:
        found: list[dict[str, Any]] = _call("GET", f"{self._session}/cookie")
        return found

    def run(self, script: str, *args: Any) -> Any:
        """Return what a script answers; it may be a promise."""
        return _call("POST", f"{self._session}/execute/sync", {"script": script, "args": args})

    def text(self, selector: str = "body") -> str:
        return str(self.run("return document.querySelector(arguments[0])?.innerText ?? ''", selector))

    def press(self, selector: str, containing: str = "") -> None:
        """Press the first element of the selector that has the text, as soon as there is one."""
        found = self.until(
            "return [...document.querySelectorAll(arguments[0])].find("
            "(one) => one.textContent.includes(arguments[1]) && one.checkVisibility())",
            selector, containing,
        )  # fmt: skip
        self.run("arguments[0].scrollIntoView({block: 'center'})", found)
        _call("POST", f"{self._session}/element/{found[_ELEMENT]}/click", {})

    def type(self, selector: str, text: str) -> None:
        found = self.until("return document.querySelector(arguments[0])", selector)
        _call("POST", f"{self._session}/element/{found[_ELEMENT]}/clear", {})
        _call("POST", f"{self._session}/element/{found[_ELEMENT]}/value", {"text": text})

    def keys(self, selector: str, text: str) -> None:
        found = self.until("return document.querySelector(arguments[0])", selector)
        _call("POST", f"{self._session}/element/{found[_ELEMENT]}/value", {"text": text})

    def until(self, script: str, *args: Any) -> Any:
        """Return what a script answers once that is something."""
        ends_at = time.monotonic() + _PATIENCE
        while not (found := self.run(script, *args)):
            if time.monotonic() > ends_at:
                raise AssertionError(f"{script} {args} found nothing at {self.address}:\n{self.text()[:2000]}")
            time.sleep(0.05)
        return found

    def until_text(self, text: str, selector: str = "body") -> None:
        self.until("return document.querySelector(arguments[0])?.innerText.includes(arguments[1])", selector, text)

    def drag(self, first: Any, last: Any) -> None:
        """Press the mouse over one element and release it over another."""
        moves = [{"type": "pointerMove", "duration": 50, "x": 0, "y": 0, "origin": one} for one in (first, last)]
        down, up = ({"type": kind, "button": 0} for kind in ("pointerDown", "pointerUp"))
        actions = [{"type": "pointer", "id": "mouse", "actions": [moves[0], down, moves[1], up]}]
        _call("POST", f"{self._session}/actions", {"actions": actions})

    def resize(self, width: int, height: int = 900, *, dark: bool = False) -> None:
        for command, params in (
            ("Emulation.setDeviceMetricsOverride",
             {"width": width, "height": height, "deviceScaleFactor": 1, "mobile": width < 600}),
            ("Emulation.setEmulatedMedia",
             {"features": [{"name": "prefers-color-scheme", "value": "dark" if dark else "light"}]}),
        ):  # fmt: skip
            _call("POST", f"{self._session}/goog/cdp/execute", {"cmd": command, "params": params})

    def screenshot(self, path: Path) -> None:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(base64.b64decode(_call("GET", f"{self._session}/screenshot")))


@contextmanager
def browser() -> Iterator[Browser]:
    """Start Chromium with a profile of its own, and end it. Skip where it is missing."""
    chromium, chromedriver = shutil.which("chromium"), shutil.which("chromedriver")
    if chromium is None or chromedriver is None:
        pytest.skip(
            "Chromium is not installed: `apt-get install chromium chromium-driver` brings what these tests need"
        )
    with tempfile.TemporaryDirectory() as profile, _driver(chromedriver) as driver:
        options = {"binary": chromium, "args": [*_FLAGS, f"--user-data-dir={profile}"]}
        wanted = {"capabilities": {"alwaysMatch": {"goog:chromeOptions": options}}}
        session = _call("POST", f"{driver}/session", wanted)["sessionId"]
        yield Browser(driver, session)
        _call("DELETE", f"{driver}/session/{session}")


@contextmanager
def _driver(chromedriver: str) -> Iterator[str]:
    """Start the driver and return its address. It ends where the port that it was given is taken for IPv6."""
    for _ in range(_TRIES):
        command = [chromedriver, "--port=0"]
        with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True) as process:
            assert process.stdout is not None
            ready = next((line for line in process.stdout if "started successfully on port" in line), None)
            if ready is None:
                continue
            try:
                yield f"http://127.0.0.1:{re.findall(r'[0-9]+', ready)[-1]}"
            finally:
                process.terminate()
            return
    raise AssertionError(f"{chromedriver} did not start in {_TRIES} tries")


def _call(method: str, address: str, body: Any = None) -> Any:
    data = None if body is None else json.dumps(body).encode()
    request = urllib.request.Request(address, data, {"content-type": "application/json"}, method=method)
    try:
        with urllib.request.urlopen(request, timeout=60) as response:
            return json.load(response)["value"]
    except urllib.error.HTTPError as error:
        raise AssertionError(json.load(error)["value"]["message"]) from None
