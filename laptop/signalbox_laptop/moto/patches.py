"""Patch moto before it serves: the little that the laptop's stack needs and can't have through the API.

Each patch says why. A patch goes once moto does it itself.
"""

from __future__ import annotations

import json
from importlib import import_module
from typing import Any

from signalbox_laptop.moto.patch_functions import complete_motos_functions
from signalbox_laptop.moto.patch_mappings import silence_motos_own_mappings
from signalbox_laptop.moto.queues import patch_queues


def patch_moto() -> None:
    """Apply all patches, in the serving process, before it serves."""
    _invoke_without_docker()
    silence_motos_own_mappings()
    complete_motos_functions()
    patch_queues()
    _make_functions_whole()
    _refer_to_layers_by_arn()
    _drop_no_value_from_lists()
    _name_the_failing_resource()
    _read_json_as_json()
    _leave_custom_resources_to_the_laptop()
    _tell_what_nested_stacks_put_out()


def _invoke_without_docker() -> None:
    """Keep moto from invoking: the laptop is the Lambda service itself, and moto only remembers what was deployed."""
    from moto.core.config import default_user_config

    default_user_config["lambda"] = {"use_docker": False}


def _make_functions_whole() -> None:
    """Add layers and log groups to functions: moto's CloudFormation makes functions without them."""
    model: Any = import_module("moto.awslambda.models").LambdaFunction
    create = model.create_from_cloudformation_json.__func__

    def make(cls: Any, name: str, resource: dict[str, Any], *rest: Any, **options: Any) -> Any:
        function = create(cls, name, resource, *rest, **options)
        left = ("Layers", "LoggingConfig")
        function.update_configuration({key: value for key, value in resource["Properties"].items() if key in left})
        return function

    model.create_from_cloudformation_json = classmethod(make)


def _refer_to_layers_by_arn() -> None:
    """Make !Ref of a layer the ARN of its version; moto gives an object of its own."""
    models: Any = import_module("moto.awslambda.models")
    models.LayerVersion.physical_resource_id = property(lambda layer: layer.arn)


def _drop_no_value_from_lists() -> None:
    """Remove AWS::NoValue items from lists; moto leaves None there, which its own policy check then refuses."""
    parsing: Any = import_module("moto.cloudformation.parsing")
    clean = parsing.clean_json

    def clean_json(value: Any, resources: Any) -> Any:
        cleaned = clean(value, resources)
        return [item for item in cleaned if item is not None] if isinstance(value, list) else cleaned

    parsing.clean_json = clean_json


def _name_the_failing_resource() -> None:
    """Name the failing resource: moto says only what failed, which is no help in a template of a hundred resources."""
    from moto.cloudformation.exceptions import ValidationError

    parsing: Any = import_module("moto.cloudformation.parsing")
    create = parsing.parse_and_create_resource

    def parse_and_create_resource(logical_id: str, resource: dict[str, Any], *rest: Any, **options: Any) -> Any:
        try:
            return create(logical_id, resource, *rest, **options)
        except _ResourceRefused:
            raise
        except Exception as error:
            why = getattr(error, "message", None) or f"{type(error).__name__}: {error}"
            raise _ResourceRefused(message=f"{logical_id} ({resource['Type']}): {why}") from error

    class _ResourceRefused(ValidationError):
        pass

    parsing.parse_and_create_resource = parse_and_create_resource


def _leave_custom_resources_to_the_laptop() -> None:
    """Leave out custom resources: moto would invoke them in Docker and wait; the laptop asks them once it serves."""
    model: Any = import_module("moto.cloudformation.custom_model").CustomModel

    def remember(resource_name: str, _: Any, __: str, region_name: str, **given: Any) -> Any:
        resource = model(region_name, "", given["LogicalId"], resource_name)
        resource.set_data({})
        return resource

    model.create_from_cloudformation_json = remember


def _tell_what_nested_stacks_put_out() -> None:
    """Give nested stacks their outputs: without attributes in moto, !GetAtt Nested.Outputs.Name fails."""
    models: Any = import_module("moto.cloudformation.models")

    def attribute(stack: Any, name: str) -> Any:
        return stack.output_map[name.removeprefix("Outputs.")].value

    models.Stack.get_cfn_attribute = attribute


def _read_json_as_json() -> None:
    """Parse JSON templates as JSON: moto reads each as YAML first, in pure Python, seconds instead of milliseconds."""
    models: Any = import_module("moto.cloudformation.models")
    read = models.Stack.parse_template

    def parse_template(template: str) -> Any:
        return json.loads(template) if template.lstrip().startswith("{") else read(template)

    models.Stack.parse_template = staticmethod(parse_template)
