"""Make rows of the pack's tables, as the product would."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import date, datetime
from typing import Any

import psycopg
from psycopg import sql

from signalbox.testing.stage import Stage
from tests.support.product_rows import insert

BASE = date(2026, 3, 1)


def add(db: psycopg.Connection[Any], table: str, **fields: Any) -> str:
    """Insert one row; return its id, or "" for a table without one."""
    return insert(db, "compliance", table, **fields)


def rows(db: psycopg.Connection[Any], table: str, *columns: str, order: str = "1") -> list[tuple[Any, ...]]:
    """Return columns of all rows of a table; dates and ids as text."""
    shown = sql.SQL(", ").join(sql.Identifier(column) for column in columns)
    statement = sql.SQL("SELECT {} FROM compliance.{} ORDER BY {}").format(
        shown,
        sql.Identifier(table),
        sql.SQL(order),
    )
    return db.execute(statement).fetchall()


@dataclass(frozen=True, slots=True)
class Workforce:
    """Hold a company with one site, and an owner who can be reached by mail and by phone."""

    db: psycopg.Connection[Any]
    company_id: str
    site_id: str
    owner_id: str

    @staticmethod
    def make(db: psycopg.Connection[Any], timezone: str = "UTC", name: str = "Acme") -> Workforce:
        company_id = add(db, "companies", name=name, timezone=timezone)
        site_id = add(db, "sites", company_id=company_id, name="North works")
        workforce = Workforce(db, company_id, site_id, "")
        owner_id = workforce.hire("OWNER", email=f"owner-{company_id[:8]}@example.com", phone="+441632960001")
        return Workforce(db, company_id, site_id, owner_id)

    @property
    def ids(self) -> dict[str, str]:
        """Return what most rows refer to."""
        return {"company_id": self.company_id, "site_id": self.site_id}

    def hire(self, role: str, *, site: bool = False, **fields: Any) -> str:
        """Add a user with a role in the company, perhaps assigned to its site; return the user's id."""
        user_id = add(self.db, "users", **{"email": f"{role.lower()}@example.com"} | fields)
        add(self.db, "user_roles", user_id=user_id, company_id=self.company_id, role=role)
        if site:
            add(self.db, "user_site_assignments", user_id=user_id, site_id=self.site_id)
        return user_id

    def document(self, **fields: Any) -> str:
        return add(self.db, "documents", **self.ids | {"title": "Permit", "permit_number": "EPR/1"} | fields)

    def obligation(self, **fields: Any) -> str:
        defaults = {"summary": "Check the bund", "frequency": "MONTHLY", "base_date": BASE}
        return add(self.db, "obligations", **self.ids | defaults | fields)

    def deadline(self, obligation_id: str, due_date: date, **fields: Any) -> str:
        return add(self.db, "deadlines", **self.ids, obligation_id=obligation_id, due_date=due_date, **fields)


def run_job(stage: Stage, job_type: str, company_id: str, slot: datetime, **payload: Any) -> dict[str, Any]:
    """Run one piece of a company's job; return its result."""
    given = {"company_id": company_id, "slot": slot.isoformat()} | payload
    job = stage.step(stage.submit(job_type, payload=given, tenant=company_id))
    assert job["status"] == "completed", stage.attempts(job["id"])
    result: dict[str, Any] = job["result"]
    return result
