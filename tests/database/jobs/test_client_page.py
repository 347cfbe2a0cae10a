"""The examples of docs/client.md run as they stand, each in its own transaction."""

from __future__ import annotations

import asyncio
import re
from typing import Any

import httpx
import psycopg
import pytest

from signalbox.testing.aws import AwsStandIn
from signalbox.testing.stage import as_url
from tests.support.template import ROOT

PAGE = (ROOT / "docs" / "client.md").read_text("utf-8")
EXAMPLES: dict[str, str] = dict(re.findall(r"<!-- runs: (\w+) -->\n```python\n(.*?)```", PAGE, re.DOTALL))
STORED = "SELECT (SELECT array_agg(id) FROM orders), array_agg(id::text) FROM signalbox.jobs"


@pytest.fixture(autouse=True)
def orders(db: psycopg.Connection) -> None:
    """Create the application's own table."""
    db.execute("CREATE TABLE orders (id int PRIMARY KEY)")


def sqlalchemy_url(dsn: str) -> str:
    return as_url(dsn).replace("postgresql:", "postgresql+psycopg:")


def run(example: str, **given: str) -> dict[str, Any]:
    names: dict[str, Any] = dict(given)
    exec(compile(EXAMPLES[example], f"docs/client.md, {example}", "exec"), names)
    return names


@pytest.mark.parametrize("example", ["psycopg", "sqlalchemy"])
def test_example_stores_and_sends_its_job(example: str, dsn: str, db: psycopg.Connection, lanes: AwsStandIn) -> None:
    names = run(example, DATABASE=dsn if example == "psycopg" else sqlalchemy_url(dsn))
    if "engine" in names:
        names["engine"].dispose()
    sent = [message["job_id"] for message in lanes.take()]
    assert len(sent) == 1
    assert db.execute(STORED).fetchone() == ([7], sent)


def test_fastapi_answers_with_a_job_that_is_stored(
    dsn: str, db: psycopg.Connection, lanes: AwsStandIn, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("DATABASE_URL", sqlalchemy_url(dsn))
    monkeypatch.setenv("SIGNALBOX_STACK", "signalbox")
    names = run("fastapi")
    transport = httpx.ASGITransport(names["app"], raise_app_exceptions=False)

    async def order_twice() -> list[httpx.Response]:
        async with httpx.AsyncClient(transport=transport, base_url="http://shop") as web:
            found = [await web.post("/orders/7") for _ in range(2)]
        await names["engine"].dispose()
        return found

    answers = asyncio.run(order_twice())  # the second breaks a constraint of the application's own
    job = answers[0].json()["job"]
    assert [answer.status_code for answer in answers] == [202, 500]
    assert db.execute(STORED).fetchone() == ([7], [job])
    assert [message["job_id"] for message in lanes.take()] == [job]
