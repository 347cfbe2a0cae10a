"""Make moto answer about functions what AWS answers, where the laptop's Lambda needs to know it.

Moto 5.2 names a place for a function's code and a layer's content but keeps nothing there, drops LoggingConfig, and
never updates the first EventInvokeConfig. Call this in moto's process, before its first request.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

# Code lies in Lambda's own bucket, not the account's, so that it appears in no list of buckets.
_LAMBDAS_ACCOUNT = "000000000000"


def complete_motos_functions() -> None:
    """Patch moto's models; every patch calls the original and adds to its answer."""
    from moto.awslambda.models import LambdaBackend, LambdaFunction, LayerVersion

    _extend(LambdaFunction, "__init__", _take_logging_of_spec)
    _extend(LambdaFunction, "update_configuration", _take_logging_of_update)
    _extend(LambdaFunction, "get_configuration", _answer_logging)
    _extend(LambdaFunction, "get_code", _keep_code)
    _extend(LayerVersion, "get_layer_version", _keep_layer)
    backend: Any = LambdaBackend
    backend.put_function_event_invoke_config = _put_event_invoke_config


def _extend(model: Any, name: str, after: Callable[..., Any]) -> None:
    setattr(model, name, _extended(getattr(model, name), after))


def _extended(original: Callable[..., Any], after: Callable[..., Any]) -> Callable[..., Any]:
    """Return a method that calls the original, then `after` with the object, the answer and the first argument."""

    @functools.wraps(original)
    def call(self: Any, *args: Any, **kwargs: Any) -> Any:
        answer = original(self, *args, **kwargs)
        after(self, answer, kwargs.get("spec") or kwargs.get("config_updates") or (args[-1] if args else None))
        return answer

    return call


def _take_logging_of_spec(function: Any, _answer: object, spec: Any) -> None:
    function.logging_config = spec.get("LoggingConfig") or {}


def _take_logging_of_update(function: Any, answer: Any, updates: Any) -> None:
    function.logging_config = updates.get("LoggingConfig") or function.logging_config
    _answer_logging(function, answer, None)


def _answer_logging(function: Any, answer: Any, _argument: object) -> None:
    default = {"LogFormat": "Text", "LogGroup": f"/aws/lambda/{function.function_name}"}
    answer["LoggingConfig"] = {**default, **function.logging_config}


def _keep_code(function: Any, answer: Any, _argument: object) -> None:
    if function.package_type == "Zip" and function.code_bytes:
        key = f"snapshots/{function.account_id}/{function.function_name}-{_of(function.code_sha_256)}"
        location = _keep(f"awslambda-{function.region}-tasks", function.region, key, function.code_bytes)
        answer["Code"] = {"RepositoryType": "S3", "Location": location}


def _keep_layer(layer: Any, answer: Any, _argument: object) -> None:
    if layer.code_bytes:
        key = f"snapshots/{layer.account_id}/{layer.name}-{_of(layer.code_sha_256)}"
        answer["Content"]["Location"] = _keep(f"awslambda-{layer.region}-layers", layer.region, key, layer.code_bytes)


def _of(sha256: str) -> str:
    """Return base64 in a form that a path can hold."""
    return sha256.rstrip("=").replace("/", "_").replace("+", "-")


def _keep(bucket: str, region: str, key: str, content: bytes) -> str:
    from moto.s3.models import s3_backends

    backend = s3_backends[_LAMBDAS_ACCOUNT]["aws"]
    if bucket not in backend.buckets:
        backend.create_bucket(bucket, region)
    if backend.get_object(bucket, key) is None:
        backend.put_object(bucket, key, content, disable_notification=True)
    return f"https://{bucket}.s3.{region}.amazonaws.com/{key}"


def _put_event_invoke_config(backend: Any, function_name: str, config: dict[str, Any]) -> Any:
    from moto.awslambda.models import EventInvokeConfig

    function = backend.get_function(function_name)
    function.event_invoke_config = [EventInvokeConfig(function.function_arn, function.last_modified, config)]
    return function.event_invoke_config[0].response()
