"""Teaches moto versions and aliases: its CloudFormation makes them, and what refers to an alias keeps to the alias.

Moto 5.2 has aliases in its API only, gives a version no attributes, publishes functions without layers, and takes a
mapping or an event configuration of an alias for one of a version or of the whole function. To be called in the process
that runs moto, before its first request.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable
from importlib import import_module
from typing import Any
from urllib.parse import unquote

_TAKEN_AT_CREATION = ("Layers", "LoggingConfig")


def teach_versions() -> None:
    """All of it."""
    lambda_: Any = import_module("moto.awslambda.models")
    _publish_what_was_deployed(lambda_)
    _tell_of_versions(lambda_)
    _make_aliases(lambda_)
    _map_to_aliases(lambda_)
    _permit_by_qualifier(lambda_)
    _configure_by_qualifier(lambda_)
    _count_configurations()


def _publish_what_was_deployed(lambda_: Any) -> None:
    """A version is published as soon as its function is made: what that lacks then, the version lacks for ever."""
    create = lambda_.LambdaFunction.create_from_cloudformation_json.__func__

    def complete(cls: Any, name: str, resource: dict[str, Any], *rest: Any, **options: Any) -> Any:
        function = create(cls, name, resource, *rest, **options)
        left = {key: resource["Properties"][key] for key in _TAKEN_AT_CREATION if key in resource["Properties"]}
        function.update_configuration(left)
        function.code_or_config_updated = False
        return function

    lambda_.LambdaFunction.create_from_cloudformation_json = classmethod(complete)


def _tell_of_versions(lambda_: Any) -> None:
    """`!GetAtt Version.Version` is its number."""
    version = lambda_.LambdaVersion
    version.has_cfn_attr = classmethod(lambda _, attribute: attribute == "Version")
    version.get_cfn_attribute = lambda self, _: str(self.version)


def _make_aliases(lambda_: Any) -> None:
    """`!Ref` of an alias is its ARN."""

    def create(_: Any, __: str, resource: dict[str, Any], account: str, region: str, **___: Any) -> Any:
        given = resource["Properties"]
        backend = lambda_.get_backend(account, region)
        return backend.create_alias(
            given["Name"],
            given["FunctionName"],
            given["FunctionVersion"],
            given.get("Description", ""),
            given.get("RoutingConfig"),
        )

    alias = lambda_.LambdaAlias
    alias.physical_resource_id = property(lambda self: self.arn)
    alias.is_created = lambda _: True
    _understand("AWS::Lambda::Alias", create)


def _map_to_aliases(lambda_: Any) -> None:
    """A mapping of an alias follows it to whichever version it points at."""

    mapping = lambda_.EventSourceMapping

    def arn(self: Any) -> str:
        name, _, qualifier = self.function_name.removeprefix("arn:").rpartition("function:")[2].partition(":")
        function = ":".join(self._function_arn.split(":")[:7])
        return f"{function}:{qualifier}" if name and qualifier else self._function_arn

    def listed(self: Any, source: str, function: str) -> list[Any]:
        found = list(every(self, source, ""))
        wanted = function.rpartition("function:")[2] if function else ""
        return [one for one in found if not wanted or one.function_arn.rpartition("function:")[2] == wanted]

    mapping.function_arn = property(arn, lambda self, given: setattr(self, "_function_arn", given))
    every = lambda_.LambdaBackend.list_event_source_mappings
    lambda_.LambdaBackend.list_event_source_mappings = listed


def _permit_by_qualifier(lambda_: Any) -> None:
    """Who may invoke an alias may not for that invoke the function."""
    create = lambda_.Permission.create_from_cloudformation_json.__func__

    def permit(cls: Any, name: str, resource: dict[str, Any], account: str, region: str, /, **rest: Any) -> Any:
        permission = create(cls, name, resource, account, region, **rest)
        given = resource["Properties"]["FunctionName"]
        _, _, qualifier = given.rpartition("function:")[2].partition(":")
        if qualifier:
            policy = lambda_.get_backend(account, region).get_function(given).policy
            policy.statements[-1]["Resource"] += f":{qualifier}"
        return permission

    lambda_.Permission.create_from_cloudformation_json = classmethod(permit)


def _configure_by_qualifier(lambda_: Any) -> None:
    """What an alias does with failed events is its own matter."""
    backend: Any = lambda_.LambdaBackend
    put, get = backend.put_function_event_invoke_config, backend.get_function_event_invoke_config
    every = backend.list_function_event_invoke_configs

    def put_one(self: Any, name: str, config: dict[str, Any]) -> Any:
        function, qualifier, configured = _configured(self, name)
        if not qualifier:
            return put(self, function, config)
        found = self.get_function(function)
        arn = f"{found.function_arn}:{qualifier}"
        configured[qualifier] = lambda_.EventInvokeConfig(arn, found.last_modified, config)
        return configured[qualifier].response()

    def get_one(self: Any, name: str) -> Any:
        function, qualifier, configured = _configured(self, name)
        if not qualifier:
            return get(self, function)
        if qualifier not in configured:
            raise lambda_.UnknownEventConfig(f"{self.get_function(function).function_arn}:{qualifier}")
        return configured[qualifier].response()

    def list_all(self: Any, name: str) -> Any:
        answer = every(self, name)
        answer["FunctionEventInvokeConfigs"] += [one.response() for one in _configured(self, name)[2].values()]
        return answer

    backend.put_function_event_invoke_config, backend.get_function_event_invoke_config = put_one, get_one
    backend.list_function_event_invoke_configs = list_all
    responses: Any = import_module("moto.awslambda.responses")
    for verb in ("put", "get"):
        _pass_the_qualifier(responses.LambdaResponse, f"{verb}_function_event_invoke_config")


def _configured(backend: Any, name: str) -> tuple[str, str, dict[str, Any]]:
    """The function and the qualifier in a name, and what is configured for the function's qualifiers."""
    function, _, qualifier = name.partition("?")
    return function, qualifier, backend.get_function(function).__dict__.setdefault("configured", {})


def _pass_the_qualifier(response: Any, name: str) -> None:
    """Behind the function's name, which is all that moto's own answer takes from the address."""
    answer = getattr(response, name)

    def answer_for(self: Any) -> Any:
        [qualifier] = self.querystring.get("Qualifier", [""])
        if qualifier:
            before, function, last = unquote(self.path).rsplit("/", 2)
            self.path = f"{before}/{function}?{qualifier}/{last}"
        return answer(self)

    setattr(response, name, answer_for)


def _count_configurations() -> None:
    """A number is all that the stack asks of a hosted configuration."""
    numbers = itertools.count(1)

    class Hosted:
        def __init__(self) -> None:
            self.physical_resource_id = str(next(numbers))

        def get_cfn_attribute(self, _: str) -> str:
            return self.physical_resource_id

        def is_created(self) -> bool:
            return True

    _understand("AWS::AppConfig::HostedConfigurationVersion", lambda *_, **__: Hosted())


def _understand(kind: str, create: Callable[..., Any]) -> None:
    """Moto's CloudFormation asks every model that there is whether a kind is its own."""
    models: Any = import_module("moto.core.common_models")
    own = {
        "cloudformation_type": staticmethod(lambda: kind),
        "cloudformation_name_type": staticmethod(lambda: ""),
        "has_cfn_attr": classmethod(lambda *_: True),
        "create_from_cloudformation_json": classmethod(create),
        "delete_from_cloudformation_json": classmethod(lambda *_: None),
    }
    _TAUGHT.append(type(kind.rpartition(":")[2], (models.CloudFormationModel,), own))


# Only a class that somebody holds is among its base's subclasses.
_TAUGHT: list[type] = []
