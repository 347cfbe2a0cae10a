"""Each function may do what its code does, and nothing else: read from the code, held against the deployed policies.

In both directions, for each function, and with every combination of the parameters by which rights come and go.
"""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import cache
from itertools import product
from typing import Any

import pytest

from local.conditions import Decided
from local.transform import package, parameters_of, transform
from signalbox.jobs.job_type import LIGHT, Lane
from signalbox.packs import load_packs, registry_of
from tests.contract.rights.code import Code, path_of
from tests.contract.rights.kinds import Client, answered
from tests.contract.rights.reach import LEADS, MAKERS, Reading, Work
from tests.contract.rights.stack import Place
from tests.contract.rights.wants import WHERE, Asked, asked, wanted
from tests.support.template import FUNCTION, PACKS, ROOT, VARIANTS, Template, referred, source, text

# What each function reads from: the handler in its folder, and what it is given to run there.
HANDLERS = {"worker-heavy": "worker", "dead-letter": "dead_letter"}
FUNCTIONS = ["api", "archiver", "poller", "worker", "worker-heavy", "dead-letter", "migrator"]
# What brings rights and takes them away: all combinations of each line, with the other lines all on and all off. Rights
# of different lines stand in statements of their own.
CHOICES: Sequence[Mapping[str, Sequence[str]]] = (
    {
        "pack": ("ForecastsPack",),
        "runpod": ("RunPodSecretArn", "RunPodEndpointId"),
        "stripe": ("StripeSecretArn",),
        "keys": ("DatabaseSecretKeyArn", "ForecastsSecretsKeyArn"),
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
    """What is chosen, and the parameters that say so."""
    for line, is_on in product(CHOICES, [False, True]):
        others = [choice for other in CHOICES if other is not line for choice in other] if is_on else []
        for chosen in product([False, True], repeat=len(line)):
            names = [*(name for name, taken in zip(line, chosen, strict=True) if taken), *others]
            given = {one for choices in CHOICES for name, ones in choices.items() if name in names for one in ones}
            yield ", ".join(names), dict(VARIANTS["engine"]) | {one: VARIANTS["everything"][one] for one in given}


@cache
def reading() -> Reading:
    return Reading(Code.read())


def work_of(function: str, packs: tuple[str, ...]) -> Work:
    """What a function is given: the archiver's tasks run in the workers too, as jobs."""
    if function not in ("archiver", "poller", "worker", "worker-heavy"):
        return Work()
    own = "poller" if function == "poller" else "archiver"
    lanes = {"worker": LIGHT, "worker-heavy": {Lane.HEAVY}}.get(function, frozenset(Lane))
    types = [one for pack in load_packs(packs) for one in pack.job_types]
    tasks = tuple(task for task in registry_of(packs) if task.function == own)
    return Work(tasks, tuple(one for one in types if one.allowed_lanes & lanes))


@cache
def asked_by(function: str, packs: tuple[str, ...]) -> Asked:
    return asked_in(reading(), function, packs)


def asked_in(code: Reading, function: str, packs: tuple[str, ...]) -> Asked:
    return asked(code, f"functions.{HANDLERS.get(function, function)}.handler.handler", work_of(function, packs))


@cache
def transformed() -> dict[str, Any]:
    template = source()
    package(template, ROOT)
    return transform(template, parameters_of(template, VARIANTS["everything"]))


def deployed_with(given: Mapping[str, str]) -> tuple[Template, dict[str, str]]:
    parameters = parameters_of(transformed(), given)
    return Template(Decided(transformed(), parameters).resources()), parameters


def differences(
    template: Template, parameters: Mapping[str, str], ask: Callable[[str, tuple[str, ...]], Asked] = asked_by
) -> Iterator[str]:
    """A line for each right that is missing or spare."""
    packs = tuple(PACKS if parameters["ForecastsPack"] == "on" else [])
    for name, function in template.of(FUNCTION).items():
        short = text(function["FunctionName"]).removeprefix("${AWS::StackName}-")
        place = Place(template, parameters, name)
        needs = set(wanted(place, work_of(short, packs), ask(short, packs)))
        has = set(place.granted())
        yield from (f"{short} may not {right.action} on {right.resource}" for right in sorted(needs - has))
        yield from (f"{short} needs no {right.action} on {right.resource}" for right in sorted(has - needs))


def test_each_function_may_do_what_its_code_does_and_nothing_else_whatever_the_parameters() -> None:
    found = {
        f"{line} (with {names or 'nothing'})"
        for names, given in combinations()
        for line in differences(*deployed_with(given))
    }
    assert sorted(found)[:20] == []


def test_nothing_in_the_code_keeps_rights_from_being_read() -> None:
    assert reading().faults() == []


@pytest.mark.parametrize("function", FUNCTIONS)
def test_of_each_call_the_code_says_of_what(function: str) -> None:
    assert asked_by(function, tuple(PACKS)).faults == ()


def test_each_function_of_the_template_is_read() -> None:
    names = {text(one["FunctionName"]) for one in deployed_with(VARIANTS["everything"])[0].of(FUNCTION).values()}
    assert names == {f"${{AWS::StackName}}-{function}" for function in FUNCTIONS}


def test_nothing_is_listed_that_is_not_there() -> None:
    names = set(reading().code.defined) | set(reading().code.modules)
    assert [one for one in [*LEADS, *MAKERS, *(name for name, _ in WHERE)] if one not in names] == []
    used = {decider for function in FUNCTIONS for _, decider in asked_by(function, tuple(PACKS)).calls}
    assert set(WHERE) == used


def test_who_reads_the_mirrors_signs_nothing() -> None:
    """Whatever is asked there needs no right, so nothing must give those clients a name."""
    connect = reading().code.defined["forecasts.sources.s3_mirror.connect"]
    assert "signature_version=UNSIGNED" in ast.unparse(connect.node)


def test_a_client_is_of_the_service_that_it_is_annotated_with() -> None:
    """All of the reading rests on it, and no type checker sees it."""
    clients = reading().code.defined["signalbox.clients.Clients"].node
    for function in ast.walk(clients):
        if isinstance(function, ast.FunctionDef):
            (made,) = [one.args[0] for one in ast.walk(function) if isinstance(one, ast.Call)]
            (kind,) = answered(reading().code, reading().code.defined[f"signalbox.clients.Clients.{function.name}"])
            assert isinstance(made, ast.Constant)
            assert kind == Client(str(made.value))


# ---- That the comparison can fail, in both directions.


def test_each_action_that_is_taken_out_is_missed() -> None:
    template, parameters = deployed_with(VARIANTS["everything"])
    allowing = list(_allowing(template))
    for action in sorted({action for _, actions in allowing for action in actions}):
        less = template
        for path, actions in allowing:
            if action in actions:  # some are allowed twice: one key may open both secrets of the pack
                less = less.altered(f"{path}.Action", [one for one in actions if one != action])
        assert any(f"may not {action} " in line for line in differences(less, parameters)), action


@pytest.mark.parametrize(
    ("path", "value", "told"),
    [
        ("LaneAccess.PolicyDocument.Statement.0.Action", ["sqs:*"], "worker needs no sqs:* on HighLane.Arn"),
        ("LaneAccess.PolicyDocument.Statement.0.Resource", "*", "archiver needs no sqs:SendMessage on *"),
        ("FileAccess.PolicyDocument.Statement.0.Action", "s3:DeleteBucket", "worker needs no s3:DeleteBucket"),
        ("PollerFunctionRole.ManagedPolicyArns", [{"Ref": "StripeAccess"}], "poller needs no secretsmanager:"),
        ("DeadLetterFunctionRole.ManagedPolicyArns", [{"Ref": "LaneAccess"}], "dead-letter needs no events:PutEvents"),
        ("WorkerHeavyFunctionRole.ManagedPolicyArns", [{"Ref": "DeliveryAccess"}], "worker-heavy needs no ses:"),
    ],
)
def test_a_right_that_is_spare_is_seen(path: str, value: Any, told: str) -> None:
    template, parameters = deployed_with(VARIANTS["everything"])
    assert [line for line in differences(template.altered(path, value), parameters) if line.startswith(told)]


ADDED = {
    # To the dead letter function: a queue's attributes, by way of what it does anyway.
    "signalbox.jobs.burial": """
def _count(tools: Tools) -> Any:
    return Lanes(tools.clients, tools.settings.stack).depth("high")
""",
    # To the api alone: an operation.
    "signalbox.operations.examine": """
def _read(engine: Engine) -> Any:
    return engine.tools.clients.sns.list_topics()
""",
    # To the poller: a task's read of an object, where nothing says of which bucket.
    "signalbox.tasks.poll_data": """
def _look(context: Context) -> Any:
    s3 = context.clients.s3
    return s3.get_object(Bucket="one", Key="two")
""",
}
CALLED = {
    "signalbox.jobs.burial": ("    letter = read_letter(", "    _count(tools)\n    letter = read_letter("),
    "signalbox.operations.examine": ("    connection = ", "    _read(engine)\n    connection = "),
    "signalbox.tasks.poll_data": ("    return ", "    _look(context)\n    return "),
}


def test_a_new_call_in_the_code_is_missed_in_the_function_that_makes_it() -> None:
    changed = {}
    for module, addition in ADDED.items():
        before, after = CALLED[module]
        written = path_of(module).read_text("utf-8")
        assert before in written
        changed[module] = written.replace(before, after, 1) + addition
    changed["signalbox.jobs.burial"] += "from signalbox.jobs.lanes import Lanes\n"
    code = Reading(Code.read(changed))

    def ask(function: str, packs: tuple[str, ...]) -> Asked:
        return asked_in(code, function, packs)

    lines = list(differences(*deployed_with(VARIANTS["engine"]), ask))
    assert "dead-letter may not sqs:GetQueueAttributes on HighLane.Arn" in lines
    assert not [line for line in lines if line.startswith("worker")], "neither buries nor answers questions"
    (lost,) = ask("api", ()).faults
    assert lost.startswith("signalbox.operations.examine._read asks sns to list_topics")
    (lost,) = ask("poller", ()).faults
    assert lost.startswith("signalbox.tasks.poll_data._look asks s3 to get_object")


STRANGE = """
from __future__ import annotations
from typing import Any
import boto3
from signalbox.clients import Clients
from signalbox.context import Context
from signalbox.jobs.lanes import Lanes

KEPT: dict[str, Any] = {}

def by_a_late_name(context: Context, name: str) -> Any:
    return getattr(context.clients.sqs, name)(QueueUrl="one")

def of_a_late_service(context: Context, name: str) -> Any:
    return getattr(context.clients, name)

def to_somebody_who_takes_anything(context: Context) -> Any:
    return print(context.clients.s3)

def into_a_drawer(context: Context) -> None:
    KEPT["s3"] = context.clients.s3

def out_of_sight(context: Context) -> Any:
    return context.clients.s3

def by_evaluation() -> Any:
    return eval("clients.s3.get_object()")

def in_a_list(context: Context) -> Any:
    return [one.get_object(Bucket="one", Key="two") for one in [context.clients.s3]]
"""


def test_what_nobody_can_follow_is_a_fault() -> None:
    found = Reading(Code.read({"signalbox.strange": STRANGE})).faults()
    for name in ("by_a_late_name", "of_a_late_service", "to_somebody_who_takes_anything", "into_a_drawer"):
        assert [line for line in found if line.startswith(f"signalbox.strange.{name}")], name
    for name in ("out_of_sight", "by_evaluation", "in_a_list"):
        assert [line for line in found if line.startswith(f"signalbox.strange.{name}")], name
    assert "signalbox.strange: imports boto3, and may make a client of its own" in found
    assert all(line.startswith("signalbox.strange") for line in found)


def _allowing(template: Template) -> Iterator[tuple[str, list[str]]]:
    """Each statement of the functions' roles and policies that allows something, by its path."""
    for name, policy in template.of("AWS::IAM::ManagedPolicy").items():
        yield from _statements(f"{name}.PolicyDocument", policy["PolicyDocument"])
    for function in template.of(FUNCTION).values():
        role = referred(function["Role"]) or ""
        for place, policy in enumerate(template.of("AWS::IAM::Role")[role]["Policies"]):
            yield from _statements(f"{role}.Policies.{place}.PolicyDocument", policy["PolicyDocument"])


def _statements(path: str, document: Mapping[str, Any]) -> Iterator[tuple[str, list[str]]]:
    for place, statement in enumerate(document["Statement"]):
        actions = statement["Action"]
        if statement["Effect"] == "Allow":
            yield f"{path}.Statement.{place}", actions if isinstance(actions, list) else [actions]
