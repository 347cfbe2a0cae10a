"""Each function's policies allow exactly the calls that tests recorded.

In both directions, for each function, and with every combination of the parameters by which rights come and go.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from functools import cache
from itertools import product
from typing import Any

import pytest

from signalbox.engine_pack import load_packs, registry_of
from signalbox.packs.job_type import LIGHT, Lane
from signalbox_laptop.deploy.conditions import Decided
from signalbox_laptop.deploy.template import package, parameters_of, transform
from tests.rights.recorder import LIST, Call, listed
from tests.rights.stack import Place
from tests.rights.wants import WHERE, Work, wanted
from tests.support.template import FUNCTION, PACKS, ROOT, SWITCHES, VARIANTS, Template, source, spread, text

# What brings rights and takes them away: all combinations of each line, with the other lines all on and all off. Rights
# of different lines stand in statements of their own.
CHOICES: Sequence[Mapping[str, Sequence[str]]] = (
    {
        "pack": tuple(SWITCHES),
        "roles": ("WriterSecretArn", "ReaderSecretArn"),
        "log-ins": ("WriterSecretArn", "ReaderSecretArn", "MakeLogIns"),
    },
    {
        "archive": ("PruneArchiveBucket",),
        "operators": ("OperatorsTopicArn",),
        "topic": ("NotificationsTopicArn",),
        "mail": ("SenderIdentityArn", "SenderAddress"),
        "sms": ("SmsNotifications",),
    },
    {"network": ("SubnetIds", "SecurityGroupIds")},
)


def combinations() -> Iterator[tuple[str, dict[str, str]]]:
    """Yield what is chosen, and the parameters that say so."""
    for line, is_on in product(CHOICES, [False, True]):
        others = [choice for other in CHOICES if other is not line for choice in other] if is_on else []
        for chosen in product([False, True], repeat=len(line)):
            names = [*(name for name, taken in zip(line, chosen, strict=True) if taken), *others]
            given = {one for choices in CHOICES for name, ones in choices.items() if name in names for one in ones}
            yield ", ".join(names), dict(VARIANTS["engine"]) | {one: VARIANTS["everything"][one] for one in given}


@cache
def work_of(function: str, packs: tuple[str, ...]) -> Work:
    """Return what a function runs: workers run the archiver's tasks too, as jobs."""
    if function not in ("archiver", "poller", "worker", "worker-heavy"):
        return Work(function)
    own = "poller" if function == "poller" else "archiver"
    lanes = {"worker": LIGHT, "worker-heavy": {Lane.HEAVY}}.get(function, frozenset())
    types = [one for pack in load_packs(packs) for one in pack.job_types]
    tasks = tuple(task for task in registry_of(packs) if task.function == own)
    return Work(function, tasks, tuple(one for one in types if one.allowed_lanes & lanes))


@cache
def transformed() -> dict[str, Any]:
    template = source()
    package(template, ROOT)
    return transform(template, parameters_of(template, VARIANTS["everything"]))


def deployed_with(given: Mapping[str, str]) -> tuple[Template, dict[str, str]]:
    parameters = parameters_of(transformed(), given)
    return Template(spread(Decided(transformed(), parameters))), parameters


def differences(template: Template, parameters: Mapping[str, str]) -> Iterator[str]:
    """Yield a line for each right that is missing or spare."""
    packs = tuple(PACKS if all(parameters[switch] == "on" for switch in SWITCHES) else [])
    for name, function in template.of(FUNCTION).items():
        short = text(function["FunctionName"]).removeprefix("${AWS::StackName}-")
        place = Place(template, parameters, name)
        needs, has = set(wanted(place, work_of(short, packs), listed())), set(place.granted())
        yield from (f"{short} may not {right.action} on {right.resource}" for right in sorted(needs - has))
        yield from (f"{short} needs no {right.action} on {right.resource}" for right in sorted(has - needs))


def test_functions_may_do_only_what_their_code_does_with_any_parameters() -> None:
    found = {
        f"{line} (with {names or 'nothing'})"
        for names, given in combinations()
        for line in differences(*deployed_with(given))
    }
    assert sorted(found)[:20] == []


def test_each_call_says_of_what_and_belongs_to_a_function() -> None:
    functions = [
        work_of(text(one["FunctionName"]).removeprefix("${AWS::StackName}-"), tuple(PACKS))
        for one in deployed_with(VARIANTS["everything"])[0].of(FUNCTION).values()
    ]
    assert [str(call) for call in listed() if (call.decider, call.service) not in WHERE] == []
    assert [str(call) for call in listed() if not any(function.makes(call) for function in functions)] == []
    assert {(call.decider, call.service) for call in listed()} == set(WHERE)


def test_the_list_is_in_order_so_that_a_change_is_one_line() -> None:
    lines = [line for line in LIST.read_text("utf-8").splitlines() if line and not line.startswith("#")]
    assert lines == sorted({str(Call.read(line)) for line in lines})


@pytest.mark.parametrize(
    ("path", "value", "told"),
    [
        ("LaneAccess.PolicyDocument.Statement.0.Action", ["sqs:*"], "worker needs no sqs:* on HighLane.Arn"),
        ("LaneAccess.PolicyDocument.Statement.0.Resource", "*", "archiver needs no sqs:SendMessage on *"),
        ("FileAccess.PolicyDocument.Statement.0.Action", "s3:DeleteBucket", "worker may not s3:"),
        ("DeadLetterFunctionRole.ManagedPolicyArns", [{"Ref": "LaneAccess"}], "dead-letter needs no events:PutEvents"),
    ],
)
def test_a_right_that_is_spare_or_missing_is_seen(path: str, value: Any, told: str) -> None:
    template, parameters = deployed_with(VARIANTS["everything"])
    assert [line for line in differences(template.altered(path, value), parameters) if line.startswith(told)]
