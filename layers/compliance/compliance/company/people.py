"""Know who works for a company, and who of them is told."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from signalbox.postgres.connection import Connection
from signalbox.postgres.queries import load_queries

SQL = load_queries(__file__)
MANAGERS = ("OWNER", "ADMIN")


@dataclass(frozen=True, slots=True)
class Person:
    """Describe a live user with a role in the company, and the company's sites that they are assigned to."""

    id: str
    email: str | None
    phone: str | None
    roles: frozenset[str]
    sites: frozenset[str]

    def has_role(self, *roles: str) -> bool:
        return not self.roles.isdisjoint(roles)


@dataclass(frozen=True, slots=True)
class People:
    """Hold the live users with a role in a company, in the order of their ids."""

    all: Sequence[Person]

    @staticmethod
    def of(db: Connection, company_id: str) -> People:
        rows = db.execute(SQL["people"], {"company_id": company_id}).fetchall()
        return People(
            [Person(id_, mail, phone, frozenset(roles), frozenset(sites)) for id_, mail, phone, roles, sites in rows]
        )

    def one(self, user_id: Any) -> Person | None:
        """Return the user of that id, if they work for the company."""
        return next((person for person in self.all if user_id is not None and person.id == str(user_id)), None)

    def with_role(self, *roles: str) -> list[Person]:
        return [person for person in self.all if person.has_role(*roles)]

    def of_site(self, site_id: Any) -> list[Person]:
        return [person for person in self.all if str(site_id) in person.sites]

    def recipient(self, assigned_to: Any, site_id: Any) -> Person | None:
        """Return who gets a notification: who is assigned, else who manages the site, else the company."""
        managers = self.with_role(*MANAGERS)
        return self.one(assigned_to) or next(
            (person for person in managers if str(site_id) in person.sites), managers[0] if managers else None
        )
