"""The options by which jobs are chosen: their ids, or what they have in common."""

from __future__ import annotations

from signalbox_cli.command_parser import CommandParser
from signalbox_cli.options.choice import Choice
from signalbox_cli.options.shared import TIME, instant

STATUSES = ("pending", "queued", "running", "completed", "failed", "cancelled", "paused")
LANES = ("high", "normal", "low", "heavy")
JOBS = Choice(
    "jobs",
    "a job",
    "--type",
    {
        "type": "job_type",
        "status": "status",
        "lane": "lane",
        "tenant": "tenant",
        "group": "group",
        "tag": "tag",
        "subject": "subject",
        "correlation": "correlation",
        "schedule": "schedule",
        "parent": "parent",
        "cap_key": "cap_key",
        "since": "since",
        "until": "until",
    },
    too_wide=("until",),
)


def add_filters(parser: CommandParser) -> None:
    group = parser.add_argument_group("which jobs (all that is given must hold)")
    group.add_argument("--type", metavar="TYPE", help="of this type")
    group.add_argument("--status", choices=STATUSES, help="in this state")
    group.add_argument("--lane", choices=LANES, help="in this lane")
    group.add_argument("--tenant", metavar="TENANT", help="of this tenant")
    group.add_argument("--group", metavar="GROUP", help="of this group")
    group.add_argument("--tag", metavar="TAG", help="with this tag")
    group.add_argument("--subject", metavar="ID", help="about this subject: what the type names in its payload")
    group.add_argument("--correlation", metavar="ID", help="with this correlation id")
    group.add_argument("--schedule", metavar="SCHEDULE", help="of this schedule, by its name or id")
    group.add_argument("--parent", metavar="ID", help="submitted by this job")
    group.add_argument("--cap-key", metavar="KEY", help="with this key for caps")
    group.add_argument("--since", type=instant, metavar=TIME, help="created from then on")
    group.add_argument("--until", type=instant, metavar=TIME, help="created up to then")
