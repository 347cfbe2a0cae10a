"""The rights that a function needs, by its code and by what the template makes of it.

What is asked of a client is known from the code; of which queue, bucket or secret, from `WHERE`: the nearest definition
on the way from the handler that is listed there decides. A call on whose way nothing is listed is a fault.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass

from signalbox.jobs.job_type import Lane
from tests.contract.rights.actions import ON_BUCKETS, actions_of, keys_for
from tests.contract.rights.kinds import Method
from tests.contract.rights.reach import Reading, Work
from tests.contract.rights.stack import Place, Right
from tests.support.template import QUEUE, referred

FUNCTIONS = "arn:${AWS::Partition}:lambda:${AWS::Region}:${AWS::AccountId}:function:${AWS::StackName}-"
WEBHOOKS = "arn:${AWS::Partition}:secretsmanager:${AWS::Region}:${AWS::AccountId}:secret:${AWS::StackName}/webhooks/*"
TEXT_MESSAGES = "all but arn:${AWS::Partition}:sns:*:*:*"
# The parameters with the keys of secrets that are not the stack's.
KEYS = {
    "SIGNALBOX_DATABASE_SECRET_ARN": "DatabaseSecretKeyArn",
    "SIGNALBOX_READER_SECRET_ARN": "DatabaseSecretKeyArn",
    "FORECASTS_RUNPOD_SECRET_ARN": "ForecastsSecretsKeyArn",
    "FORECASTS_STRIPE_SECRET_ARN": "ForecastsSecretsKeyArn",
}
MAPPING, CONFIG = "AWS::Lambda::EventSourceMapping", "AWS::Lambda::EventInvokeConfig"
READING = {"sqs:DeleteMessage", "sqs:GetQueueAttributes", "sqs:ReceiveMessage"}
IN_A_NETWORK = {
    "ec2:AssignPrivateIpAddresses",
    "ec2:CreateNetworkInterface",
    "ec2:DeleteNetworkInterface",
    "ec2:DescribeNetworkInterfaces",
    "ec2:DescribeSubnets",
    "ec2:UnassignPrivateIpAddresses",
}

Where = Callable[[Place, Work], Iterable[str | None]]


def told(*variables: str) -> Where:
    """What the function's own environment names: without it, the code has nothing to ask."""
    return lambda place, _: [place.told(variable) for variable in variables]


def lanes(place: Place, _: Work) -> list[str]:
    """Sent to by name."""
    names = {place.spelled(queue["QueueName"]): id_ for id_, queue in place.template.of(QUEUE).items()}
    return [f"{names[f'${{AWS::StackName}}-{lane}']}.Arn" for lane in Lane]


def queues_of_its_own(place: Place) -> list[str]:
    """Those that it gets its messages from."""
    mappings = place.template.of(MAPPING).values()
    return [place.arn(one["EventSourceArn"]) for one in mappings if _invoked(place, one["FunctionName"])]


def functions_of_its_tasks(_: Place, work: Work) -> list[str]:
    """A run goes on in its task's own function."""
    return sorted({f"{FUNCTIONS}{task.function}" for task in work.tasks})


def functions_of_tasks(_: Place, __: Work) -> list[str]:
    """Runs of any task are handed over."""
    return [f"{FUNCTIONS}archiver", f"{FUNCTIONS}poller"]


def identity(place: Place, _: Work) -> list[str | None]:
    return [place.given("SenderIdentityArn") if place.told("SIGNALBOX_SENDER_ADDRESS") else None]


def topic_and_numbers(place: Place, _: Work) -> list[str | None]:
    numbers = TEXT_MESSAGES if place.given("SmsNotifications") == "on" else None
    return [place.told("SIGNALBOX_NOTIFICATIONS_TOPIC_ARN"), numbers]


def archive(place: Place, _: Work) -> list[str | None]:
    bucket = place.given("PruneArchiveBucket")
    return [f"arn:${{AWS::Partition}}:s3:::{bucket}" if bucket else None]


WHERE: Mapping[tuple[str, str], Where] = {
    ("signalbox.secret", "secretsmanager"): told("SIGNALBOX_DATABASE_SECRET_ARN", "SIGNALBOX_READER_SECRET_ARN"),
    ("signalbox.login", "secretsmanager"): told(
        "SIGNALBOX_WRITER_LOGIN_SECRET_ARN", "SIGNALBOX_READER_LOGIN_SECRET_ARN"
    ),
    ("signalbox.webhooks.signing_key", "secretsmanager"): lambda *_: [WEBHOOKS],
    ("signalbox.jobs.lanes", "sqs"): lanes,
    ("signalbox.worker.visibility", "sqs"): lambda place, _: queues_of_its_own(place),
    ("signalbox.jobs.events", "events"): told("SIGNALBOX_EVENT_BUS"),
    ("signalbox.archive", "s3"): archive,
    ("signalbox.runs._continue", "lambda"): functions_of_its_tasks,
    ("signalbox.backfills", "lambda"): functions_of_tasks,
    ("signalbox.tasks.reconcile_slots", "lambda"): functions_of_tasks,
    ("signalbox.tasks.sweep_runs", "lambda"): functions_of_tasks,
    ("signalbox.jobs.redrive", "lambda"): functions_of_tasks,
    ("signalbox.tasks.notify_dead_letters", "sns"): told("SIGNALBOX_OPERATORS_TOPIC_ARN"),
    ("signalbox.job_types.deliver_notification", "sns"): topic_and_numbers,
    ("signalbox.job_types.deliver_notification", "sesv2"): identity,
    ("signalbox.job_types.import_table", "s3"): told("SIGNALBOX_JOBS_BUCKET"),
    ("signalbox.job_types.export_table", "s3"): told("SIGNALBOX_JOBS_BUCKET"),
    ("forecasts.runpod", "secretsmanager"): told("FORECASTS_RUNPOD_SECRET_ARN"),
    ("forecasts.tasks.sync_stripe", "secretsmanager"): told("FORECASTS_STRIPE_SECRET_ARN"),
    ("forecasts.tasks.archive_watchpoints", "sqs"): told("FORECASTS_EVALUATIONS_QUEUE_URL"),
    ("forecasts.tasks.requeue_deferred", "sqs"): told("FORECASTS_NOTIFICATIONS_QUEUE_URL"),
    ("forecasts.tasks.trigger_digests", "sqs"): told("FORECASTS_NOTIFICATIONS_QUEUE_URL"),
    ("forecasts.tasks.transition_forecasts", "s3"): told("FORECASTS_FORECAST_BUCKET"),
    ("forecasts.cold_storage", "s3"): told("FORECASTS_ARCHIVE_BUCKET"),
}


@dataclass(frozen=True, slots=True)
class Asked:
    """What a function's code asks of AWS, and where each of it is decided."""

    calls: frozenset[tuple[Method, tuple[str, str]]]
    faults: tuple[str, ...]


def asked(reading: Reading, root: str, work: Work) -> Asked:
    """Of the function whose handler is the root."""
    came = reading.reach(root, work)
    calls, faults = set(), []
    for name, method in reading.asks(came):
        found, lost = _deciders(came, name, method.service)
        calls |= {(method, decider) for decider in found}
        what = f"{name} asks {method.service} to {method.name}"
        faults += [f"{what}, and from {one} on nothing says of what" for one in sorted(lost)]
    return Asked(frozenset(calls), tuple(faults))


def wanted(place: Place, work: Work, what: Asked) -> Iterator[Right]:
    """By its code, and because it is a function of that shape."""
    for method, decider in what.calls:
        for resource in WHERE[decider](place, work):
            if resource is not None:
                yield from _rights(place, method, resource)
    yield from _of_its_shape(place)


def _deciders(came: Mapping[str, set[str]], name: str, service: str) -> tuple[set[tuple[str, str]], set[str]]:
    """The nearest entries of WHERE on each way to a definition, and the ways' beginnings without any."""
    found, lost, seen, ahead = set(), set(), {name}, [name]
    while ahead:
        here = ahead.pop()
        if decider := _decider(here, service):
            found.add(decider)
        elif not came[here]:
            lost.add(here)
        else:
            ahead += came[here] - seen
            seen |= came[here]
    return found, lost


def _decider(name: str, service: str) -> tuple[str, str] | None:
    """A definition's own entry, or that of its class or module."""
    while name:
        if (name, service) in WHERE:
            return name, service
        name = name.rpartition(".")[0]
    return None


def _rights(place: Place, method: Method, resource: str) -> Iterator[Right]:
    for action in actions_of(method.service, method.name):
        objects = method.service == "s3" and action not in ON_BUCKETS
        yield Right(action, f"{resource}/*" if objects else resource)
        for key, way in _keys(place, resource):
            yield from (Right(one, f"{key} via {way}") for one in keys_for(action, method.name))


def _keys(place: Place, resource: str) -> Iterator[tuple[str, str]]:
    """The key that a thing is encrypted with, if it is one that has to be asked for, and the service that asks."""
    properties = place.template.resources.get(resource.partition(".")[0], {}).get("Properties", {})
    if "KmsMasterKeyId" in properties:
        way = "sns" if "TopicName" in properties else "sqs"
        yield place.arn(properties["KmsMasterKeyId"]), way
    rules = properties.get("BucketEncryption", {}).get("ServerSideEncryptionConfiguration", [])
    for rule in rules:
        if key := rule["ServerSideEncryptionByDefault"].get("KMSMasterKeyID"):
            yield place.arn(key), "s3"
    if "MasterUserSecret" in resource:
        yield place.arn(properties["MasterUserSecret"]["KmsKeyId"]), "secretsmanager"
    elif "GenerateSecretString" in properties:
        yield place.arn(properties["KmsKeyId"]), "secretsmanager"
    for variable, parameter in KEYS.items():
        if (key := place.given(parameter)) and place.told(variable) == resource:
            yield key, "secretsmanager"


def _of_its_shape(place: Place) -> Iterator[Right]:
    group = referred(place.properties["LoggingConfig"]["LogGroup"])
    yield from (Right(action, f"{group}.Arn") for action in ("logs:CreateLogStream", "logs:PutLogEvents"))
    if "VpcConfig" in place.properties:
        yield from (Right(action, "*") for action in IN_A_NETWORK)
    for config in place.template.of(CONFIG).values():
        if referred(config["FunctionName"]) == place.function:
            queue = place.arn(config["DestinationConfig"]["OnFailure"]["Destination"])
            yield from _rights(place, Method("sqs", "send_message"), queue)
    for queue in queues_of_its_own(place):
        yield from (Right(action, queue) for action in READING)
        yield from (Right("kms:Decrypt", f"{key} via {way}") for key, way in _keys(place, queue))


def _invoked(place: Place, target: object) -> bool:
    """Whether a mapping is of this function."""
    return referred(target) == place.function
