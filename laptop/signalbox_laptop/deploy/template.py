"""Turn the template as written into the one that CloudFormation takes: read, package, transform by SAM.

All of it works offline: AWS's managed policies are not looked up, since nothing on the laptop checks rights.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import yaml

from signalbox_laptop.aws import session
from signalbox_laptop.deploy.package import Artifact, package_function, package_layer
from signalbox_laptop.errors import DeployFailed

Template = dict[str, Any]

# Map a resource type to the property that names a folder, and to the function that packages it.
_PACKAGED: Mapping[str, tuple[str, Callable[[Path], Artifact]]] = {
    "AWS::Serverless::Function": ("CodeUri", package_function),
    "AWS::Serverless::LayerVersion": ("ContentUri", package_layer),
}


def read_template(path: Path) -> Template:
    """Return the template with CloudFormation's short forms (!Ref, !Sub …) written out."""
    try:
        template = yaml.load(path.read_text(), Loader=_Loader)  # noqa: S506, the loader below is a safe one
    except (OSError, yaml.YAMLError) as error:
        raise DeployFailed(f"template {path} can't be read: {error}") from None
    if not isinstance(template, dict) or not isinstance(template.get("Resources"), dict):
        raise DeployFailed(f"template {path} has no Resources")
    for name, resource in template["Resources"].items():
        if not isinstance(resource, dict) or not isinstance(resource.get("Type"), str):
            raise DeployFailed(f"resource {name} of {path} has no Type; language extensions are not understood")
    return template


def package(template: Template, folder: Path) -> dict[str, Artifact]:
    """Replace each named folder by the address of its artifact; return the artifacts to upload by key."""
    artifacts: dict[str, Artifact] = {}
    for resource in template["Resources"].values():
        name, make = _PACKAGED.get(resource.get("Type"), ("", None))
        source = resource.get("Properties", {}).get(name)
        if make is not None and isinstance(source, str) and not source.startswith("s3://"):
            artifact = make(folder / source)
            artifacts[artifact.key] = artifact
            resource["Properties"][name] = artifact.uri
    return artifacts


def parameters_of(template: Template, given: Mapping[str, str]) -> dict[str, str]:
    """Return each parameter's value: the given one, else its default."""
    declared = template.get("Parameters") or {}
    if unknown := sorted(set(given) - set(declared)):
        raise DeployFailed(f"the template has no parameter {', '.join(unknown)}; it has {', '.join(sorted(declared))}")
    values = {name: given.get(name, declared[name].get("Default")) for name in declared}
    if missing := sorted(name for name, value in values.items() if value is None):
        raise DeployFailed(f"the template's parameter {', '.join(missing)} has no default: give a value for it")
    return {name: str(value) for name, value in values.items()}


def transform(template: Template, parameters: Mapping[str, str]) -> Template:
    """Return the template as SAM transforms it."""
    from samtranslator.model.exceptions import InvalidDocumentException
    from samtranslator.parser.parser import Parser
    from samtranslator.translator.translator import Translator

    try:
        transformed: Template = Translator(None, Parser(), boto_session=session()).translate(
            template, parameter_values=dict(parameters), get_managed_policy_map=dict
        )
    except InvalidDocumentException as error:
        faults = "; ".join(cause.message for cause in error.causes)
        raise DeployFailed(f"SAM refuses the template: {faults}") from None
    return transformed


class _Loader(getattr(yaml, "CSafeLoader", yaml.SafeLoader)):  # type: ignore[misc]
    """Keep dates as text: the versions of templates and policies look like dates, but are not."""


_Loader.yaml_implicit_resolvers = {
    first: [(tag, pattern) for tag, pattern in resolvers if tag != "tag:yaml.org,2002:timestamp"]
    for first, resolvers in _Loader.yaml_implicit_resolvers.items()
}


def _write_out(loader: Any, suffix: str, node: yaml.Node) -> dict[str, Any]:
    """Write a short form out: !Ref and !Condition keep their names, others become Fn::…; !GetAtt splits at the dot."""
    name = suffix if suffix in ("Ref", "Condition") else f"Fn::{suffix}"
    if isinstance(node, yaml.ScalarNode):
        value: Any = loader.construct_scalar(node)
        return {name: re.split(r"\.", value, maxsplit=1) if suffix == "GetAtt" else value}
    if isinstance(node, yaml.SequenceNode):
        return {name: loader.construct_sequence(node, deep=True)}
    return {name: loader.construct_mapping(node, deep=True)}


_Loader.add_multi_constructor("!", _write_out)
