"""Fill the table `job_types`: the packs' job types, for submits in SQL."""

from __future__ import annotations

import json
from collections.abc import Collection, Sequence
from dataclasses import asdict
from typing import Any

from signalbox.errors import MigrationRefused
from signalbox.packs.job_type import Route
from signalbox.packs.pack import Pack
from signalbox.packs.payload_schema import has_validators, schema_of
from signalbox.packs.registries import RegisteredJobType
from signalbox.postgres.connection import Connection
from signalbox.postgres.queries import load_queries

SQL = load_queries(__file__)


def keep_job_types(db: Connection, packs: Sequence[Pack], newer: Collection[str]) -> None:
    """Store the types of these packs. Those of `newer` packs stay as their own code has stored them."""
    rows = [_row(pack, RegisteredJobType(job_type)) for pack in packs for job_type in pack.job_types]
    with db.transaction():
        db.execute(SQL["keep"], {"types": json.dumps(rows)})
        db.execute(SQL["keep_options"], {"types": json.dumps(rows)})
        for name, hook in db.execute(SQL["find_hooks_amiss"]).fetchall():
            raise MigrationRefused(
                f"job type '{name}' names on_dead_letter='{hook}': there is no function "
                f"{hook}(job uuid, payload jsonb, reason text, error jsonb); a migration of its pack makes it"
            )
        names = [name for pack in packs for name in _names(pack)]
        db.execute(SQL["keep_names"], {"given": json.dumps(names), "newer": list(newer)})
        db.execute(SQL["forget"], {"names": [row["name"] for row in rows], "newer": list(newer)})


def _row(pack: Pack, known: RegisteredJobType) -> dict[str, Any]:
    job_type = known.type
    return {
        "name": job_type.name,
        "pack": pack.name,
        "summary": job_type.summary,
        "version": job_type.version,
        "category": job_type.category,
        "lane": job_type.lane,
        "lanes": sorted(job_type.allowed_lanes),
        "max_attempts": job_type.retry.max_attempts,
        "timeout_ms": round(job_type.timeout.total_seconds() * 1000),
        "cap": job_type.cap and asdict(job_type.cap),
        "subject": job_type.subject,
        "correlation": job_type.correlation,
        "payload_schema": schema_of(known.model),
        "has_validators": has_validators(known),
        "on_dead_letter": job_type.on_dead_letter,
        "route": job_type.route and _route(job_type.route),
        "tags": dict(job_type.tags) or None,
        "job_name": job_type.job_name,
    }


def _names(pack: Pack) -> list[dict[str, Any]]:
    aliases = [{"name": name, "pack": pack.name, "job_type": job_type} for name, job_type in pack.aliases.items()]
    return aliases + [{"name": name, "pack": pack.name, "reason": why} for name, why in pack.reserved.items()]


def _route(route: Route) -> dict[str, Any]:
    timeouts = {value: round(one.total_seconds() * 1000) for value, one in route.timeouts.items()}
    return {"by": route.by, "lanes": dict(route.lanes), "timeouts": timeouts}
