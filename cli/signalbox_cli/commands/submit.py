"""`signalbox submit` submits a job from options, or many from a file, checked before any is stored."""

from __future__ import annotations

import sys
import time
from argparse import ArgumentTypeError, Namespace
from datetime import UTC, datetime, timedelta
from typing import Any

from signalbox_cli.command import Example
from signalbox_cli.command_parser import CommandParser
from signalbox_cli.errors import FunctionFailed, UsageRefused
from signalbox_cli.options.bulk_options import confirmed, nothing_done, requester
from signalbox_cli.options.filters import LANES
from signalbox_cli.options.job_file import Job, JobFile, calls, counted, read_jobs
from signalbox_cli.options.shared import TIME, TIME_FORMS, add_target, instant, json_object, positive
from signalbox_cli.target.target import Target, choose_target
from signalbox_cli.terminal import console, print_json, print_lines, say, width_of
from signalbox_cli.views.job_page import job_page
from signalbox_cli.views.times import read_span

CATEGORIES = ("critical", "high_priority", "standard", "background", "maintenance")
EXAMPLES = (
    Example("""submit run_task --payload '{"task": "sweep_runs"}'""", "submit one job, to run as soon as possible"),
    Example("""submit run_task --payload '{"task": "sweep_runs"}' --wait""", "submit it, and watch it until it ends"),
    Example(
        """submit run_task --payload '{"task": "prune_history"}' --delay 10m --key 2026-02""",
        "run later, and only once even if submitted again",
    ),
    Example("submit --file jobs.jsonl --dry-run", "check jobs from a file, one JSON object per line; store none"),
    Example("submit --file jobs.json --yes --json", "submit them; do not ask"),
)
_FINAL = ("completed", "failed", "cancelled")
_LOOK_AGAIN_SECONDS = 0.5


def configure(parser: CommandParser) -> None:
    parser.explain(
        "A file holds objects with a job_type and the other fields of the operation submit_jobs: payload, ref, "
        f"depends_on, group, priority, … {TIME_FORMS}"
    )
    parser.add_argument("type", metavar="TYPE", nargs="?", help="the type of the job")
    parser.add_argument("--payload", type=json_object, metavar="JSON", help="the payload of the job")
    parser.add_argument(
        "--file", metavar="FILE", help="many jobs: a JSON array, or one object per line; - is the input"
    )
    _configure_job(parser)
    group = parser.add_argument_group("how")
    group.add_argument("--dry-run", action="store_true", help="check the jobs, and store nothing")
    group.add_argument("--yes", "-y", action="store_true", help="do not ask for confirmation")
    group.add_argument(
        "--wait", action="store_true", help="watch the job until it ends; exit code 1 unless it succeeds"
    )
    add_target(parser)


def _configure_job(parser: CommandParser) -> None:
    group = parser.add_argument_group("the job")
    group.add_argument("--key", metavar="KEY", help="idempotency key: a second submit with it returns the first job")
    group.add_argument("--replace-key", metavar="KEY", help="replace the job of the type with this key that waits")
    group.add_argument("--category", choices=CATEGORIES, help="the category, instead of the type's")
    group.add_argument("--priority", type=positive, metavar="N", help="1 (first) to 10 (default: 5)")
    group.add_argument("--lane", choices=LANES, help="the lane (default: by type and priority)")
    when = group.add_mutually_exclusive_group()
    when.add_argument("--delay", type=_span, metavar="SPAN", help="start no earlier than SPAN from now: 90s, 10m, 2h")
    when.add_argument("--at", type=instant, metavar=TIME, help="start no earlier than this time")
    group.add_argument("--tenant", metavar="TENANT", help="the tenant of the job; tenants share lanes fairly")
    group.add_argument("--group", metavar="GROUP", help="the group that it joins")
    group.add_argument(
        "--after",
        dest="depends_on",
        action="append",
        metavar="ID",
        help="start after this job has succeeded; may be repeated",
    )
    group.add_argument("--tag", dest="tags", action="append", metavar="TAG", help="a tag for filters; may be repeated")
    group.add_argument("--name", metavar="NAME", help="a name to show to people")
    group.add_argument("--correlation", dest="correlation_id", metavar="ID", help="a correlation id for filters")
    group.add_argument("--cap-key", metavar="KEY", help="a key of your own for caps and rates")
    group.add_argument(
        "--max-attempts", type=positive, metavar="N", help="at most N attempts, instead of the type's number"
    )
    group.add_argument("--timeout", type=_span, metavar="SPAN", help="time-out of an attempt, instead of the type's")


_PLAIN = ("payload", "priority", "lane", "tenant", "group", "depends_on", "tags", "name", "correlation_id", "cap_key",
          "max_attempts", "replace_key", "category")  # fmt: skip


def _span(text: str) -> timedelta:
    span = read_span(text)
    if span is None:
        raise ArgumentTypeError(f"'{text}' is not a length of time, such as 90s, 10m or 2h")
    return span


def run(args: Namespace) -> int:
    single = _job(args)
    if args.file is None:
        if not args.type:
            raise UsageRefused("name the TYPE of the job, or give many with --file; `signalbox submit --help`")
        return _submit_one(args, {"job_type": args.type, **single})
    if args.type or single or args.wait:
        raise UsageRefused("--file holds whole jobs: leave out TYPE and the options of a job")
    return _submit_many(args)


def _job(args: Namespace) -> dict[str, Any]:
    """Return the job's fields that were given."""
    given = {name: getattr(args, name) for name in _PLAIN} | {
        "idempotency_key": args.key,
        "delay_seconds": args.delay and args.delay.total_seconds(),
        "at": args.at and args.at.isoformat(),
        "timeout_seconds": args.timeout and args.timeout.total_seconds(),
    }
    return {name: value for name, value in given.items() if value is not None}


def _submit_one(args: Namespace, job: dict[str, Any]) -> int:
    target = choose_target(args)
    answer = target.operate("submit_jobs", jobs=[job], by=requester(), dry_run=args.dry_run or None)
    if args.dry_run:
        return _checked(args, answer)
    if args.wait:
        return _watched(args, target, answer["jobs"][0]["id"])
    if args.json:
        print_json(answer)
    else:
        [new] = answer["jobs"]
        before = "" if new["created"] else ", submitted before with the same key"
        print(f"job {new['id']} of {new['job_type']} is {new['status']} in lane {new['lane']}{before}")
    return 0


def _checked(args: Namespace, answer: dict[str, Any]) -> int:
    if args.json:
        print_json(answer)
    else:
        plan = answer["dry_run"]
        again = plan["jobs"] - plan["created"]
        print(f"{plan['created']:,} to submit" + (f"; {again:,} were submitted before" if again else ""))
    return 0


def _watched(args: Namespace, target: Target, id_: str) -> int:
    shown = ""
    while True:
        found = target.operate("show_job", id=id_)
        job = found["job"]
        state = f"{job['status']} {job['progress_percent']} %" if job["status"] == "running" else job["status"]
        if state != shown and job["status"] not in _FINAL:
            say(f"job {id_} is {state}")
            shown = state
        if job["status"] in _FINAL:
            break
        time.sleep(_LOOK_AGAIN_SECONDS)
    if args.json:
        print_json(found)
    else:
        out = console()
        print_lines(out, job_page(found, width_of(out), datetime.now(UTC)))
    return 0 if job["status"] == "completed" else 1


def _submit_many(args: Namespace) -> int:
    file = None if args.file == "-" else read_jobs(args.file)
    if not (args.yes or args.dry_run) and (file is None or not sys.stdin.isatty()):
        raise UsageRefused("nothing was submitted: no terminal to prompt on; add --yes, or --dry-run to check")
    file = file or read_jobs(args.file)
    jobs = file.jobs
    parts, target = calls(jobs), choose_target(args)
    plans = _plans(target, file, parts)
    created = sum(plan["created"] for plan in plans)
    if args.dry_run:
        return _checked(args, {"dry_run": {"jobs": len(jobs), "created": created}})
    say(f"{counted(jobs)}; {created:,} to submit, {len(jobs) - created:,} were submitted before")
    if not (args.yes or confirmed("submit them?")):
        return nothing_done(args, "it was not confirmed", code=1)
    answers = [target.operate("submit_jobs", jobs=part, by=requester()) for part in parts]
    submitted = [job for answer in answers for job in answer["jobs"]]
    total = {name: sum(answer[name] for answer in answers) for name in ("created", "sent")}
    if args.json:
        print_json({"jobs": submitted, **total})
    else:
        print(f"submitted {total['created']:,} jobs; {len(submitted) - total['created']:,} had been submitted before")
    return 0


def _plans(target: Target, file: JobFile, parts: list[list[Job]]) -> list[dict[str, Any]]:
    """Return what each call would do. An error about a job names its place in the file."""
    plans: list[dict[str, Any]] = []
    first = 0
    for part in parts:
        try:
            plans.append(target.operate("submit_jobs", jobs=part, dry_run=True)["dry_run"])
        except FunctionFailed as error:
            raise file.located(error, first) from None
        first += len(part)
    return plans
