"""Build the environment of a function's process: Lambda's own variables, the function's, the laptop's.

It starts empty, so that a function can't come to rely on the developer's shell. Only what this machine needs to run
Python and to trust certificates is copied.
"""

from __future__ import annotations

import os
import sysconfig
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from signalbox_laptop.aws import CREDENTIALS, REGION
from signalbox_laptop.lambda_api.errors import ParameterInvalid
from signalbox_laptop.lambda_control.function import Function
from signalbox_laptop.lambda_control.settings import ServiceSettings
from signalbox_laptop.lambda_runtime.packages import Artefact

# Lambda refuses a function that sets one of these.
RESERVED = frozenset(
    {
        "_HANDLER",
        "_X_AMZN_TRACE_ID",
        "AWS_DEFAULT_REGION",
        "AWS_REGION",
        "AWS_EXECUTION_ENV",
        "AWS_LAMBDA_FUNCTION_NAME",
        "AWS_LAMBDA_FUNCTION_MEMORY_SIZE",
        "AWS_LAMBDA_FUNCTION_VERSION",
        "AWS_LAMBDA_INITIALIZATION_TYPE",
        "AWS_LAMBDA_LOG_GROUP_NAME",
        "AWS_LAMBDA_LOG_STREAM_NAME",
        "AWS_ACCESS_KEY",
        "AWS_ACCESS_KEY_ID",
        "AWS_SECRET_ACCESS_KEY",
        "AWS_SESSION_TOKEN",
        "AWS_LAMBDA_RUNTIME_API",
        "LAMBDA_TASK_ROOT",
        "LAMBDA_RUNTIME_DIR",
    }
)
_TAKEN_OVER = (
    "PATH",
    "SSL_CERT_FILE",
    "SSL_CERT_DIR",
    "REQUESTS_CA_BUNDLE",
    "CURL_CA_BUNDLE",
    "AWS_CA_BUNDLE",
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Sandbox:
    """Describe what differs from one execution environment to the next."""

    artefact: Artefact
    log_stream: str
    # Lambda's /tmp: the environment's own, removed with it.
    folder: Path


def variables_of(function: Function, sandbox: Sandbox, settings: ServiceSettings) -> dict[str, str]:
    """Return all variables but AWS_LAMBDA_RUNTIME_API, which is known once the process's API listens."""
    _refuse_reserved(function)
    return {
        **_from_this_machine(os.environ, sandbox.folder),
        "LANG": "en_US.UTF-8",
        "TZ": ":UTC",
        # The function's variables override these, so that a function can be pointed elsewhere.
        **settings.extra_environment,
        **_known_secrets(function, settings),
        **function.variables,
        **settings.addresses,
        "PYTHONPATH": _python_path(function, sandbox.artefact),
        "AWS_ENDPOINT_URL": settings.public_endpoint,
        **_from_lambda(function, sandbox),
    }


def _known_secrets(function: Function, settings: ServiceSettings) -> dict[str, str]:
    return dict(settings.known_secrets[pair] for pair in function.variables.items() if pair in settings.known_secrets)


def _refuse_reserved(function: Function) -> None:
    reserved = sorted(RESERVED & set(function.variables))
    if reserved:
        raise ParameterInvalid(
            f"Lambda was unable to configure the environment variables of '{function.name}', because they contain "
            f"reserved keys: {', '.join(reserved)}. Name them otherwise; AWS refuses to deploy them, too."
        )


def _from_this_machine(shell: Mapping[str, str], folder: Path) -> dict[str, str]:
    taken = {name: shell[name] for name in _TAKEN_OVER if name in shell}
    return {**taken, "HOME": str(folder), "TMPDIR": str(folder)}


def _python_path(function: Function, artefact: Artefact) -> str:
    own = function.variables.get("PYTHONPATH")
    return os.pathsep.join([*artefact.python_path, *([own] if own else [])])


def _from_lambda(function: Function, sandbox: Sandbox) -> dict[str, str]:
    task_root = str(sandbox.artefact.task_root)
    variables = {
        **CREDENTIALS,
        "AWS_REGION": REGION,
        "AWS_DEFAULT_REGION": REGION,
        "AWS_EXECUTION_ENV": f"AWS_Lambda_{function.package.runtime}",
        "AWS_LAMBDA_FUNCTION_NAME": function.name,
        "AWS_LAMBDA_FUNCTION_VERSION": function.version,
        "AWS_LAMBDA_FUNCTION_MEMORY_SIZE": str(function.memory),
        "AWS_LAMBDA_INITIALIZATION_TYPE": "on-demand",
        "AWS_LAMBDA_LOG_GROUP_NAME": function.logging.group,
        "AWS_LAMBDA_LOG_STREAM_NAME": sandbox.log_stream,
        "AWS_LAMBDA_LOG_FORMAT": "JSON",
        "LAMBDA_TASK_ROOT": task_root,
        "LAMBDA_RUNTIME_DIR": sysconfig.get_path("purelib"),
        "_HANDLER": function.package.handler,
    }
    return {**variables, **({"AWS_LAMBDA_LOG_LEVEL": level} if (level := function.logging.level) else {})}
