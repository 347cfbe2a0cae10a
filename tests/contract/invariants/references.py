"""What every template keeps: each thing that it refers to is there, under the parameters that are looked at."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

from tests.support.template import Template, listed

_NAMED = re.compile(r"\$\{([A-Za-z0-9:]+)(?:\.[A-Za-z0-9.]+)?\}")


def lead_somewhere(template: Template) -> Iterator[str]:
    """A condition that leaves out what another resource refers to fails the deploy halfway through."""
    known = {*template.resources, *template.parameters}
    for name, resource in template.resources.items():
        for named in (*names_in(resource), *listed(resource.get("DependsOn", []))):
            if named not in known and not named.startswith("AWS::"):
                yield f"{name}: refers to {named}, which is not there"


def names_in(value: Any) -> Iterator[str]:
    """What a value refers to, however deep: every name in Ref, GetAtt and Sub."""
    if isinstance(value, list):
        for part in value:
            yield from names_in(part)
    elif isinstance(value, dict):
        if "Ref" in value:
            yield str(value["Ref"])
        if "Fn::GetAtt" in value:
            yield str(value["Fn::GetAtt"][0])
        if isinstance(value.get("Fn::Sub"), str):
            yield from _NAMED.findall(value["Fn::Sub"])
        for part in value.values():
            yield from names_in(part)
