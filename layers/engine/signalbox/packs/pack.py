"""Define a pack: tasks and job types, with the migrations of the schema that has its name.

The engine names no pack. A stack's setting SIGNALBOX_PACKS does, and each pack's package offers `pack.PACK`.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from signalbox.packs.job_type import JobType
from signalbox.packs.task import Task


@dataclass(frozen=True, slots=True)
class PackRoute:
    """Describe requests over HTTP that a function of the pack answers, which is imported when it is first asked for.

    It takes the resources, the request, the names in its path, and the invocation, and returns an HttpResponse.
    Nobody is asked for a token: what it needs to know about who asks is its own to check.
    """

    method: str
    path: str  # such as "/shared/files/{token}"
    function: str  # such as "shop.links.open_file"


@dataclass(frozen=True, slots=True)
class Pack:
    """Describe what one layer brings."""

    name: str  # also the name of its package and of its schema
    tasks: tuple[Task, ...]
    migrations: Path
    job_types: tuple[JobType, ...] = ()
    routes: tuple[PackRoute, ...] = ()
    # Other names of job types, of any pack: a job is stored under the type's own, with the tag `as:<name>`.
    aliases: Mapping[str, str] = field(default_factory=dict)
    reserved: Mapping[str, str] = field(default_factory=dict)  # names of no job type, each with the reason
