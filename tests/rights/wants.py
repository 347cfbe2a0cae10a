"""Work out the rights that a function needs, from its code's calls and from the template.

Which calls there are says `calls.txt`; of which queue, bucket or secret, `WHERE`: the nearest definition on the way to
the call that is listed there decides.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from fnmatch import fnmatch
from typing import TYPE_CHECKING

from signalbox.packs.job_type import JobType, Lane
from signalbox.packs.task import Task
from tests.rights.actions import ON_BUCKETS, actions_of, keys_for
from tests.rights.stack import Place, Right
from tests.support.template import BUCKET, MAPPING, QUEUE, referred

if TYPE_CHECKING:
    from tests.rights.recorder import Call

FUNCTIONS = "arn:${AWS::Partition}:lambda:${AWS::Region}:${AWS::AccountId}:function:${AWS::StackName}-"
SECRETS = "arn:${AWS::Partition}:secretsmanager:${AWS::Region}:${AWS::AccountId}:secret:${AWS::StackName}/"
KEY_OF_A_SECRET = "arn:${AWS::Partition}:kms:${AWS::Region}:*:key/*"
MODELS = (
    "arn:${AWS::Partition}:bedrock:*::foundation-model/*",
    "arn:${AWS::Partition}:bedrock:${AWS::Region}:${AWS::AccountId}:inference-profile/*",
)
# An address that the function signs: who has it asks with the function's rights.
SIGNED = {
    "api": (Right("s3:GetObject", "ComplianceBucket.Arn/audit-packs/*"), Right("kms:Decrypt", "StackKey.Arn via s3"))
}
TEXT_MESSAGES = "all but arn:${AWS::Partition}:sns:*:*:*"
CONFIG = "AWS::Lambda::EventInvokeConfig"
READING = {"sqs:DeleteMessage", "sqs:GetQueueAttributes", "sqs:ReceiveMessage"}
IN_A_NETWORK = {
    "ec2:AssignPrivateIpAddresses",
    "ec2:CreateNetworkInterface",
    "ec2:DeleteNetworkInterface",
    "ec2:DescribeNetworkInterfaces",
    "ec2:DescribeSubnets",
    "ec2:UnassignPrivateIpAddresses",
}


@dataclass(frozen=True, slots=True)
class Work:
    """List what one function of the stack runs."""

    function: str
    tasks: tuple[Task, ...] = ()
    jobs: tuple[JobType, ...] = ()

    def makes(self, call: Call) -> bool:
        """Say whether the asker is a part of this work."""
        asks = {"any function", self.function.removesuffix("-heavy")} | ({"run"} if self.tasks else set())
        return call.asker in asks | {f"task {one.name}" for one in self.tasks} | {
            f"job {one.name}" for one in self.jobs
        }


Where = Callable[[Place, Work], Iterable[str | None]]


def from_variables(*variables: str) -> Where:
    """Find what the function's own environment names: without it, the code has nothing to ask."""
    return lambda place, _: [place.arn_in(variable) for variable in variables]


def named(kind: str, field: str, *names: str) -> Where:
    """Find what the code knows by its name, or by a pattern of it."""

    def find(place: Place, _: Work) -> list[str]:
        has = {id_: place.spelled(one.get(field, "")) for id_, one in place.template.of(kind).items()}
        return [
            f"{id_}.Arn" for name in names for id_, full in has.items() if fnmatch(full, f"${{AWS::StackName}}-{name}")
        ]

    return find


def secret_of_the_pack(pack: str, secret: str) -> Where:
    """Find the pack's secrets; the poller may read only the one it needs."""

    def find(place: Place, work: Work) -> list[str | None]:
        arn = f"{SECRETS}{pack}/{secret}-*" if work.function == "poller" else f"{SECRETS}{pack}/*"
        return [arn if pack in str(place.arn_in("SIGNALBOX_PACKS")) else None]

    return find


def queues_of_its_own(place: Place) -> list[str]:
    """Return the queues that it reads."""
    mappings = place.template.of(MAPPING).values()
    return [place.arn(one["EventSourceArn"]) for one in mappings if _invoked(place, one["FunctionName"])]


def functions_of_its_tasks(_: Place, work: Work) -> list[str]:
    """Return its tasks' own functions, where their runs continue."""
    return sorted({f"{FUNCTIONS}{task.function}" for task in work.tasks})


def functions_of_tasks(_: Place, __: Work) -> list[str]:
    """Return the functions that runs of any task are handed to."""
    return [f"{FUNCTIONS}archiver", f"{FUNCTIONS}poller"]


def identity(place: Place, _: Work) -> list[str | None]:
    return [place.given("SenderIdentityArn") if place.arn_in("SIGNALBOX_SENDER_ADDRESS") else None]


def topic_and_numbers(place: Place, _: Work) -> list[str | None]:
    numbers = TEXT_MESSAGES if place.given("SmsNotifications") == "on" else None
    return [place.arn_in("SIGNALBOX_NOTIFICATIONS_TOPIC_ARN"), numbers]


def of_pack(pack: str, *resources: str) -> Where:
    """Name resources that only a stack with the pack asks for."""
    return lambda place, _: resources if pack in str(place.arn_in("SIGNALBOX_PACKS")) else ()


def archive(place: Place, _: Work) -> list[str | None]:
    bucket = place.given("PruneArchiveBucket")
    return [f"arn:${{AWS::Partition}}:s3:::{bucket}" if bucket else None]


WHERE: Mapping[tuple[str, str], Where] = {
    ("signalbox.aws.database_secret", "secretsmanager"): from_variables(
        "SIGNALBOX_DATABASE_SECRET_ARN", "SIGNALBOX_READER_SECRET_ARN"
    ),
    ("signalbox.migrate.logins", "secretsmanager"): from_variables(
        "SIGNALBOX_WRITER_LOGIN_SECRET_ARN", "SIGNALBOX_READER_LOGIN_SECRET_ARN"
    ),
    ("signalbox.job_types.webhooks.signing_key", "secretsmanager"): lambda *_: [f"{SECRETS}webhooks/*"],
    ("signalbox.publish.lanes", "sqs"): named(QUEUE, "QueueName", *Lane),
    ("signalbox.worker.visibility", "sqs"): lambda place, _: queues_of_its_own(place),
    ("signalbox.publish.status_events", "events"): from_variables("SIGNALBOX_EVENT_BUS"),
    ("signalbox.batches.row_archive", "s3"): archive,
    ("signalbox.ledger.run._continue", "lambda"): functions_of_its_tasks,
    ("signalbox.ledger.backfill_driver", "lambda"): functions_of_tasks,
    ("signalbox.operations.registered", "lambda"): functions_of_tasks,
    ("signalbox.tasks.reconcile_slots", "lambda"): functions_of_tasks,
    ("signalbox.tasks.sweep_runs", "lambda"): functions_of_tasks,
    ("signalbox.dead_letters.restart", "lambda"): functions_of_tasks,
    ("signalbox.tasks.notify_dead_letters", "sns"): from_variables("SIGNALBOX_OPERATORS_TOPIC_ARN"),
    ("signalbox.job_types.deliver_notification", "sns"): topic_and_numbers,
    ("signalbox.job_types.deliver_notification", "sesv2"): identity,
    ("signalbox.job_types.tables.import_table", "s3"): from_variables("SIGNALBOX_JOBS_BUCKET"),
    ("signalbox.job_types.tables.export_table", "s3"): from_variables("SIGNALBOX_JOBS_BUCKET"),
    ("forecasts.runs.runpod", "secretsmanager"): secret_of_the_pack("forecasts", "runpod"),
    ("forecasts.tasks.sync_stripe", "secretsmanager"): secret_of_the_pack("forecasts", "stripe"),
    ("forecasts.tasks.archive_watchpoints", "sqs"): named(QUEUE, "QueueName", "evaluations"),
    ("forecasts.tasks.requeue_deferred", "sqs"): named(QUEUE, "QueueName", "notifications"),
    ("forecasts.tasks.trigger_digests", "sqs"): named(QUEUE, "QueueName", "notifications"),
    ("forecasts.tasks.transition_forecasts", "s3"): named(BUCKET, "BucketName", "forecasts-*"),
    ("compliance", "s3"): named(BUCKET, "BucketName", "compliance-*"),
    ("compliance.sharing.link_tokens", "secretsmanager"): secret_of_the_pack("compliance", "links"),
    ("compliance.sharing.deliver_pack", "sesv2"): identity,
    ("signalbox.documents.ocr", "textract"): of_pack("compliance", "*"),
    ("passports", "s3"): from_variables("SIGNALBOX_JOBS_BUCKET"),
    ("records", "s3"): from_variables("SIGNALBOX_JOBS_BUCKET"),
    ("passports.issuing", "secretsmanager"): from_variables("PASSPORTS_SIGNING_SECRET_ARN"),
    ("signalbox.documents.model", "bedrock-runtime"): of_pack("compliance", *MODELS),
    ("signalbox.aws.cold_storage", "s3"): named(BUCKET, "BucketName", "archive-*"),
}


def wanted(place: Place, work: Work, calls: Iterable[Call]) -> Iterator[Right]:
    """Yield the rights for its code's calls, and those that every function of its shape needs."""
    for call in filter(work.makes, calls):
        for resource in filter(None, WHERE[call.decider, call.service](place, work)):
            yield from _rights(place, call.service, call.method, resource)
    yield from _of_its_shape(place)
    if "ComplianceBucket" in place.template.resources:
        yield from SIGNED.get(work.function, ())


def _rights(place: Place, service: str, method: str, resource: str) -> Iterator[Right]:
    for action in actions_of(service, method):
        objects = service == "s3" and action not in ON_BUCKETS
        yield Right(action, f"{resource}/*" if objects else resource)
        for key, way in _keys(place, resource):
            yield from (Right(one, f"{key} via {way}") for one in keys_for(action, method))


def _keys(place: Place, resource: str) -> Iterator[tuple[str, str]]:
    """Yield each key that encrypts the resource and needs a right, and the service that asks for it."""
    properties = place.template.resources.get(resource.partition(".")[0], {}).get("Properties", {})
    if "KmsMasterKeyId" in properties:
        way = "sns" if "TopicName" in properties else "sqs"
        yield place.arn(properties["KmsMasterKeyId"]), way
    rules = properties.get("BucketEncryption", {}).get("ServerSideEncryptionConfiguration", [])
    for rule in rules:
        if key := rule["ServerSideEncryptionByDefault"].get("KMSMasterKeyID"):
            yield place.arn(key), "s3"
    # The keys of webhooks stay under Secrets Manager's own.
    if ":secretsmanager:" in resource and not resource.startswith(f"{SECRETS}webhooks/"):
        yield KEY_OF_A_SECRET, "secretsmanager"


def _of_its_shape(place: Place) -> Iterator[Right]:
    group = referred(place.properties["LoggingConfig"]["LogGroup"])
    yield from (Right(action, f"{group}.Arn") for action in ("logs:CreateLogStream", "logs:PutLogEvents"))
    if "VpcConfig" in place.properties:
        yield from (Right(action, "*") for action in IN_A_NETWORK)
    for config in place.template.of(CONFIG).values():
        if referred(config["FunctionName"]) == place.function:
            queue = place.arn(config["DestinationConfig"]["OnFailure"]["Destination"])
            yield from _rights(place, "sqs", "send_message", queue)
    for queue in queues_of_its_own(place):
        yield from (Right(action, queue) for action in READING)
        yield from (Right("kms:Decrypt", f"{key} via {way}") for key, way in _keys(place, queue))


def _invoked(place: Place, target: object) -> bool:
    """Say whether a mapping is of this function."""
    return referred(target) == place.function
