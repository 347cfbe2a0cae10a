"""Read settings from a function's environment. All faults are listed together."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Annotated, Any, ClassVar, Self, get_origin

from pydantic import AfterValidator, BaseModel, ConfigDict, Field, PlainValidator, ValidationError, ValidationInfo

from signalbox.errors import SettingsRefused
from signalbox.packs.suggest import nearest

_OF_THE_STACK = {"stack": "SIGNALBOX_STACK", "account": "SIGNALBOX_ACCOUNT", "region": "AWS_REGION"}


def _fill_in(name: str, info: ValidationInfo) -> str:
    for part, value in (info.context or {}).items():
        name = name.replace(f"{{{part}}}", value)
    return name


# A text in which {stack}, {account}, {region} and {http_api} are replaced by the stack's own, such as a bucket's name.
StackName = Annotated[str, AfterValidator(_fill_in), Field(validate_default=True)]


class EnvironmentSettings(BaseModel):
    """Read each field from a variable: the prefix, and the field's name in capitals. An empty variable is unset.

    A tuple or a dict is JSON, unless its own validator reads the text. `<prefix>SETTINGS` may hold any of the fields in
    one JSON object; a field's own variable wins over it.
    """

    model_config = ConfigDict(frozen=True, extra="forbid", arbitrary_types_allowed=True)
    prefix: ClassVar[str]

    @classmethod
    def read(cls, environ: Mapping[str, str]) -> Self:
        """Return the settings, or raise one error that lists every fault by its variable."""
        faults: list[str] = []
        given = cls._read_together(environ.get(f"{cls.prefix}SETTINGS", ""), faults)
        for name, text in environ.items():
            if name.startswith(cls.prefix) and name != f"{cls.prefix}SETTINGS" and (value := text.strip()):
                field = name.removeprefix(cls.prefix).lower()
                try:
                    given[field] = json.loads(value) if cls._is_json(field) else value
                except ValueError:
                    faults.append(f"{name} is not JSON")
        context = {part: environ[variable] for part, variable in _OF_THE_STACK.items() if variable in environ}
        context["http_api"] = environ.get("SIGNALBOX_HTTP_API", "")  # many stacks have none
        try:
            settings = cls.model_validate(given, context=context)
        except ValidationError as error:
            faults += [cls._describe(fault) for fault in error.errors()]
        faults += cls._faults_of_all(given)
        if faults:
            raise SettingsRefused("the function's environment is wrong: " + "; ".join(faults))
        return settings

    @classmethod
    def _faults_of_all(cls, given: Mapping[str, Any]) -> list[str]:
        """Return what is wrong with the settings together, beside the faults of single ones."""
        return []

    @classmethod
    def _is_json(cls, field: str) -> bool:
        """Say whether a variable holds JSON. A text may begin like JSON, too: a key template does."""
        known = cls.model_fields.get(field)
        return (
            known is not None
            and get_origin(known.annotation) in (tuple, dict)
            and not any(isinstance(one, PlainValidator) for one in known.metadata)
        )

    @classmethod
    def _read_together(cls, text: str, faults: list[str]) -> dict[str, Any]:
        try:
            given = json.loads(text.strip() or "{}")
        except ValueError:
            given = None
        if isinstance(given, dict):
            return given
        faults.append(f"{cls.prefix}SETTINGS is not a JSON object")
        return {}

    @classmethod
    def _describe(cls, fault: Any) -> str:
        """Return a fault in words. Those of our own validators never quote a value that may be secret."""
        field = str(fault["loc"][0])
        variable = f"{cls.prefix}{field.upper()}"
        match fault["type"]:
            case "missing":
                return f"{variable} is not set"
            case "extra_forbidden":
                known = [f"{cls.prefix}{name.upper()}" for name in cls.model_fields]
                return f"{variable} is not known{nearest(variable, known)}"
            case "value_error":
                return f"{variable} {fault['ctx']['error']}"
        return f"{variable} is {fault['input']!r}: {fault['msg']}"
