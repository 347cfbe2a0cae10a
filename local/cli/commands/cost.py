"""`signalbox cost`: what a stack costs a month with so many jobs a day, from the template and from list prices.

Asks nobody: no stack has to be there, and no account. docs/cost.md says what is counted and what is assumed.
"""

from __future__ import annotations

from argparse import ArgumentTypeError, Namespace
from dataclasses import replace
from math import isfinite
from pathlib import Path
from typing import TYPE_CHECKING

from local.cli.command import Example
from local.cli.command_parser import CommandParser
from local.cli.errors import UsageRefused
from local.cli.options import add_output, parameter, positive
from local.cli.terminal import console, print_json, print_lines, width_of

if TYPE_CHECKING:
    from local.cost.load import Load
    from local.cost.stack import Stack

EXAMPLES = (
    Example("cost --jobs-per-day 100000", "with the database that you have"),
    Example("cost --jobs-per-day 100000 --job-ms 250 --at-once 20", "jobs of a quarter of a second, twenty a submit"),
    Example("cost --jobs-per-day 1000 --database aurora --proxy", "with an Aurora and a proxy of the stack's own"),
    Example("cost --jobs-per-day 0 --free-tier", "what it costs to have it, less what is free each month"),
    Example("cost --jobs-per-day 10000000 --parameter LaneBatchSize=1000 --json", "for programs"),
)
_MOST = 1e12
_TEMPLATE = Path(__file__).parents[3] / "template.yaml"


def configure(parser: CommandParser) -> None:
    parser.explain("List prices, without an account or a stack; docs/cost.md says what is counted and assumed.")
    _add_load(parser)
    group = parser.add_argument_group("the stack")
    group.add_argument("--database", choices=("existing", "aurora"), help="the parameter Database")
    group.add_argument("--proxy", action="store_true", help="DatabaseProxy=on: an RDS Proxy before the Aurora")
    group.add_argument("--network", choices=("own", "made"), help="a VPC of yours, or the one that comes with Aurora")
    group.add_argument("--pack", choices=("forecasts",), help="with its scheduled tasks")
    group.add_argument("--memory", type=positive, metavar="MB", help="of the worker, instead of the template's")
    group.add_argument("--parameter", type=parameter, action="append", default=[], metavar="NAME=VALUE",
                       help="of the template; may be given several times")  # fmt: skip
    group.add_argument("--template", type=Path, default=_TEMPLATE, metavar="PATH", help="another than this one's")
    group.add_argument("--free-tier", action="store_true", help="take off what AWS gives for free each month")
    add_output(parser)


def _add_load(parser: CommandParser) -> None:
    group = parser.add_argument_group("the load")
    group.add_argument("--jobs-per-day", type=_amount, required=True, metavar="N", help="0: what it costs to have it")
    group.add_argument("--job-ms", type=_amount, metavar="MS",
                       help="what a job itself takes (default: a transactional one with one statement)")  # fmt: skip
    group.add_argument("--lane", choices=("high", "normal", "low", "heavy"), default="normal", help="default: normal")
    group.add_argument("--busy-hours", type=_hours, default=24.0, metavar="N", help="of a day, in which they come")
    group.add_argument("--at-once", type=positive, default=1, metavar="N", help="jobs that one submit brings")
    group.add_argument("--batch", type=positive, metavar="N", help="jobs that a worker finds at once, if you know it")
    group.add_argument("--job-types", type=positive, default=5, metavar="N", help="each has metrics of its own")


def _amount(text: str) -> float:
    try:
        number = float(text.replace(",", "").replace("_", ""))
    except ValueError:
        raise ArgumentTypeError(f"'{text}' is not a number, such as 100000") from None
    if not isfinite(number) or not 0 <= number <= _MOST:
        raise ArgumentTypeError(f"'{text}' is not a number from 0 to a million million")
    return number


def _hours(text: str) -> float:
    number = _amount(text)
    if not 0 < number <= 24:
        raise ArgumentTypeError(f"'{text}' is not a number of hours up to 24")
    return number


def run(args: Namespace) -> int:
    from local.cli.cost_page import cost_json, cost_lines
    from local.cost.estimate import estimate

    found = estimate(_stack(args), _load(args), free_tier=args.free_tier)
    if args.json:
        print_json(cost_json(found))
        return 0
    out = console()
    print_lines(out, cost_lines(found, width_of(out)))
    return 0


def _stack(args: Namespace) -> Stack:
    from local.cost.stack import read_stack

    stack = read_stack(args.template, _parameters(args))
    if args.memory is None:
        return stack
    worker = stack.functions[stack.lane(args.lane).function]
    return replace(stack, functions={**stack.functions, worker.name: replace(worker, memory_mb=args.memory)})


def _parameters(args: Namespace) -> dict[str, str]:
    """The options are short for parameters; one that is given by its own name wins."""
    if args.network == "made" and args.database != "aurora":
        raise UsageRefused("--network made comes with --database aurora: a stack makes a VPC for the database it makes")
    if args.proxy and args.database != "aurora":
        raise UsageRefused("--proxy stands before the database that the stack makes: give --database aurora as well")
    given = {"Database": args.database} if args.database else {}
    if args.database == "aurora":
        given["DatabaseProxy"] = "on" if args.proxy else "off"
    if args.network == "own":
        given |= {"VpcId": "vpc-own", "SubnetIds": "subnet-one,subnet-two", "SecurityGroupIds": "sg-own"}
    if args.pack:
        given[f"{args.pack.capitalize()}Pack"] = "on"
    return given | dict(args.parameter)


def _load(args: Namespace) -> Load:
    from local.cost.load import Load

    return Load(
        jobs_a_day=args.jobs_per_day,
        job_ms=args.job_ms,
        batch=args.batch,
        submitted_at_once=args.at_once,
        busy_hours=args.busy_hours,
        job_types=args.job_types,
        lane=args.lane,
    )
