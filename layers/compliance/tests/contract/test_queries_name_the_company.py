"""Rows of one company never reach another: each query names the company, or says here why it needs none."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from signalbox.postgres.queries import load_queries
from tests.support.template import ROOT

PACK = ROOT / "layers/compliance/compliance"
# A query that finds the company by an id that the job is given, or rows that belong to nobody.
WITHOUT = {
    "consultants/consultant_client_sync.user": "a user, who belongs to no company",
    "documents/store.find": "the document of the payload; the company follows from it",
    "documents/store.find_log": "logs of one document, which was found with its company",
    "documents/store.add_log": "a log has no company but its document's",
    "documents/store.find_rules": "the rules library belongs to nobody",
    "imports/store.find": "the import of the payload; the company follows from it",
    "sharing/deliver_pack.find": "the distribution of the payload; the company follows from it",
    "sharing/deliver_pack.keep_token": "the distribution that was found",
    "sharing/deliver_pack.mark_sent": "the distribution that was found",
    "sharing/links.exists": "anyone with the token may know",
    "sharing/links.view": "anyone with the token may see the pack",
    "sharing/pack_distribution.insert": "rows of the pack that was found",
    "sharing/pack_distribution.look": "rows of the pack that was found",
    "sharing/pack_distribution.pack": "the pack of the payload; the company follows from it",
    "tasks/report_failed_jobs.find": "failed jobs of all companies",
    "tasks/report_failed_jobs.user": "a consultant, who belongs to no company",
    "tasks/report_failed_jobs.write_errors": "the failed jobs that were found",
    "tasks/triggers.consultants": "consultants of all companies",
    "tasks/triggers.permits": "permits of all companies, each with its own",
    "tasks/triggers.companies": "all companies",
}


def queries() -> Iterator[tuple[str, str]]:
    for path in sorted(PACK.rglob("*.sql")):
        if path.parent.name != "migrations":
            name = path.relative_to(PACK).with_suffix("")
            yield from ((f"{name}.{query}", text) for query, text in load_queries(str(path)).items())


@pytest.mark.parametrize(
    ("name", "text"), [pytest.param(*one, id=one[0]) for one in queries() if one[0] not in WITHOUT]
)
def test_a_query_names_the_company(name: str, text: str) -> None:
    assert re.search(r"%\((company_id|consultant_id)\)s", text), f"{name} reads or writes rows of any company"


def test_each_exception_is_a_query() -> None:
    assert WITHOUT.keys() <= {name for name, _ in queries()}


def test_no_query_stands_in_python() -> None:
    sql = re.compile(r'"\s*(SELECT|INSERT INTO|UPDATE|DELETE FROM) ')
    assert [path.name for path in Path(PACK).rglob("*.py") if sql.search(path.read_text("utf-8"))] == []
