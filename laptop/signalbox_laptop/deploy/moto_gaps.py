"""Make the resources that moto's CloudFormation leaves out, through the AWS API and from the same template.

CloudFormation itself gives the values of the properties: the deployed template has extra outputs that ask for them, so
a reference means here what it means elsewhere in the template. A test deploys each kind without its completion: an
entry that moto has made unnecessary fails it and must go.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Collection, Iterator, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from signalbox_laptop.aws import client

if TYPE_CHECKING:
    from mypy_boto3_apigatewayv2 import ApiGatewayV2Client
    from mypy_boto3_lambda import LambdaClient
    from mypy_boto3_s3 import S3Client
    from mypy_boto3_sqs import SQSClient

_OUTPUT = "LaptopCompletes"

Template = Mapping[str, Any]
Properties = dict[str, Any]


@dataclass(frozen=True, slots=True)
class Completion:
    """Describe one kind of resource that moto leaves out, whole or in part."""

    type: str
    why: str
    complete: Callable[[str, str, Properties], None]  # endpoint, physical id ("" if there is none), properties
    properties: Collection[str] = ()  # the ones left out, if the rest is made


def _configure_event_invocation(endpoint: str, _: str, properties: Properties) -> None:
    lambda_: LambdaClient = client("lambda", endpoint)
    lambda_.put_function_event_invoke_config(**properties)


def _attach_queue_policy(endpoint: str, _: str, properties: Properties) -> None:
    sqs: SQSClient = client("sqs", endpoint)
    for queue in properties["Queues"]:
        policy = json.dumps(properties["PolicyDocument"])
        sqs.set_queue_attributes(QueueUrl=queue, Attributes={"Policy": policy})


def _configure_bucket(endpoint: str, name: str, properties: Properties) -> None:
    s3: S3Client = client("s3", endpoint)
    s3.put_bucket_versioning(Bucket=name, VersioningConfiguration=properties["VersioningConfiguration"])


def _integrate_http_api(endpoint: str, _: str, properties: Properties) -> None:
    """Make the HTTP API with its integration, which says which function the laptop asks."""
    gateway: ApiGatewayV2Client = client("apigatewayv2", endpoint)
    api = gateway.create_api(Name="http-api", ProtocolType="HTTP")["ApiId"]
    gateway.create_integration(**{**properties, "ApiId": api})


def _leave_out(_: str, __: str, ___: Properties) -> None:
    """Do nothing: the laptop does without this resource, and does not ask for its properties."""


def _leave_to_its_function(_: str, __: str, ___: Properties) -> None:
    """Do nothing now: the resource's function makes it later from these properties."""


COMPLETIONS = (
    Completion(
        "AWS::Lambda::EventInvokeConfig",
        "moto skips it: failed asynchronous invocations would leave no trace",
        _configure_event_invocation,
    ),
    Completion(
        "AWS::SQS::QueuePolicy",
        "moto skips it: rules could not send to their dead-letter queue",
        _attach_queue_policy,
    ),
    Completion(
        "AWS::S3::Bucket",
        "moto makes buckets without versions: what is overwritten or deleted would be gone",
        _configure_bucket,
        ("VersioningConfiguration",),
    ),
    Completion(
        "Custom::SignalboxMigrations",
        "moto only notes it, since it can't invoke functions: deploy/custom_resources.py does, once they are served",
        _leave_to_its_function,
    ),
    Completion(
        "AWS::S3::BucketPolicy",
        "moto skips it, and so does the laptop: it has no TLS, without which these policies refuse all",
        _leave_out,
    ),
    Completion(
        "AWS::CloudWatch::Alarm",
        "moto skips it, and so does the laptop: nothing there measures what alarms look at",
        _leave_out,
    ),
    Completion(
        "AWS::ApiGatewayV2::Integration",
        "moto's CloudFormation skips API Gateway V2: the laptop would not know which function serves the HTTP API",
        _integrate_http_api,
    ),
    *(
        Completion(
            f"AWS::ApiGatewayV2::{kind}",
            "moto skips it, and so does the laptop: it serves one HTTP API, all of it by one integration",
            _leave_out,
        )
        for kind in ("Api", "Route", "Stage")
    ),
    Completion(
        "AWS::Logs::QueryDefinition",
        "moto skips it, and has no Logs Insights to ask with it",
        _leave_out,
    ),
    Completion(
        "AWS::SNS::TopicPolicy",
        "moto skips it, and so does the laptop: it has no alarms that publish, and no TLS",
        _leave_out,
    ),
    Completion(
        "AWS::SNS::Subscription",
        "moto skips it, and so does the laptop: it sends no mail to anybody",
        _leave_out,
    ),
)

_BY_TYPE = {completion.type: completion for completion in COMPLETIONS}


def with_questions(template: Template) -> dict[str, Any]:
    """Return the template with an extra output for each resource to complete, which asks for its properties."""
    questions = {
        f"{_OUTPUT}{name}": question
        for name, resource in template["Resources"].items()
        if (question := _question(name, resource))
    }
    return {**template, "Outputs": {**(template.get("Outputs") or {}), **questions}}


def _question(name: str, resource: Template) -> dict[str, Any] | None:
    completion = _BY_TYPE.get(resource["Type"])
    properties = resource.get("Properties", {})
    if completion is None or completion.complete is _leave_out or not (asked := _left_out(completion, properties)):
        return None
    question: dict[str, Any] = {"Value": {"Fn::ToJsonString": {"Id": {"Ref": name}, "Properties": asked}}}
    return {**question, "Condition": resource["Condition"]} if "Condition" in resource else question


def _left_out(completion: Completion, properties: Properties) -> Properties:
    if not completion.properties:
        return properties
    return {name: value for name, value in properties.items() if name in completion.properties}


def complete(endpoint: str, template: Template, outputs: Mapping[str, str]) -> None:
    """Make what was left out, from the outputs that answer the questions."""
    for name, resource in template["Resources"].items():
        if answer := outputs.get(f"{_OUTPUT}{name}"):
            answered = json.loads(answer)
            _BY_TYPE[resource["Type"]].complete(endpoint, answered.get("Id", ""), answered["Properties"])


def custom_resources(resources: Template, outputs: Mapping[str, str]) -> Iterator[tuple[str, str, Properties]]:
    """Return name, type and properties of each resource that a function of the stack is to make."""
    for name, resource in resources.items():
        if resource["Type"].startswith("Custom::"):
            yield name, resource["Type"], json.loads(outputs[f"{_OUTPUT}{name}"])["Properties"]


def is_completed(resource_type: str) -> bool:
    """Say whether the list makes this kind as a whole."""
    completion = _BY_TYPE.get(resource_type)
    return completion is not None and not completion.properties
