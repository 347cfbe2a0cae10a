"""An alias as the Lambda API keeps it: the version that it points at, and a second one that has a share of the calls.

AWS draws lots for each call. Here the share is dealt out evenly, so that of ten calls at ten percent exactly one goes
to the second version: what a test or a person looks for is there the first time.
"""

from __future__ import annotations

import threading
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from mypy_boto3_lambda.type_defs import AliasConfigurationResponseTypeDef


@dataclass(frozen=True, slots=True)
class Alias:
    """One state of it; `second` is there only while calls are split."""

    version: str
    second: str | None = None
    share: float = 0.0

    @staticmethod
    def read(answer: AliasConfigurationResponseTypeDef) -> Alias:
        weights = (answer.get("RoutingConfig") or {}).get("AdditionalVersionWeights") or {}
        for second, share in weights.items():
            return Alias(answer["FunctionVersion"], second, float(share))
        return Alias(answer["FunctionVersion"])


class Dealer:
    """Deals the calls of one alias out to its versions."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._alias: Alias | None = None
        self._owed = 0.0

    def version(self, alias: Alias) -> str:
        """Whose turn it is."""
        with self._lock:
            if alias != self._alias:
                self._alias, self._owed = alias, 0.0
            self._owed += alias.share
            # A tenth ten times is a hair less than one.
            if alias.second is None or self._owed < 1 - 1e-9:
                return alias.version
            self._owed -= 1
            return alias.second
