"""Keep the execution environments of all functions: take one for an invocation, keep it warm, close it when unused.

The one used last is taken first, so that the others can go idle. An environment of an older revision finishes the
invocation it has and gets no other.
"""

from __future__ import annotations

import os
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING

from signalbox_laptop.lambda_api.errors import LambdaFault
from signalbox_laptop.lambda_runtime.environment import Environment, ProcessGone
from signalbox_laptop.lambda_runtime.invocation import LambdaInvocation, Result

if TYPE_CHECKING:
    from signalbox_laptop.lambda_control.function import Function
    from signalbox_laptop.lambda_control.settings import ServiceSettings
    from signalbox_laptop.lambda_runtime.log_writer import LogWriter
    from signalbox_laptop.lambda_runtime.packages import Artefacts

# In AWS each start has a machine to itself; fifty at once on this one would all miss their ten seconds.
_STARTS_AT_ONCE = 2 * (os.cpu_count() or 1)


class Fleet:
    """Own every environment of the service."""

    def __init__(self, artefacts: Artefacts, settings: ServiceSettings, writer: LogWriter) -> None:
        self._artefacts = artefacts
        self._settings = settings
        self._writer = writer
        self._changed = threading.Condition()
        self._idle: dict[str, list[Environment]] = {}
        self._busy: set[Environment] = set()
        self._starting = 0
        self._stopping = False
        self._reaper = threading.Thread(target=self._reap, name="environment-reaper", daemon=True)

    def start(self) -> None:
        self._reaper.start()

    def run(self, function: Function, invocation: LambdaInvocation) -> Result:
        while True:
            environment = self._take(function)
            try:
                return environment.run(function, invocation)
            except ProcessGone:
                continue
            finally:
                self._give_back(environment)

    def count(self) -> int:
        with self._changed:
            return len(self._busy) + sum(len(idle) for idle in self._idle.values())

    def stop(self) -> None:
        """Kill all environments, busy ones included."""
        with self._changed:
            self._stopping = True
            self._changed.notify_all()
            environments = [*self._busy, *(one for idle in self._idle.values() for one in idle)]
            self._idle.clear()
        self._reaper.join()
        _close_all(environments)

    def _take(self, function: Function) -> Environment:
        """Return a warm environment or a new one. If none may start now, wait for a free start or a returned one."""
        unfit: list[Environment] = []
        with self._changed:
            while (environment := self._take_idle(function, unfit)) is None and self._starting >= _STARTS_AT_ONCE:
                self._changed.wait()
            self._starting += environment is None
        _close_all(unfit)
        return environment or self._make(function)

    def _take_idle(self, function: Function, unfit: list[Environment]) -> Environment | None:
        self._refuse_when_stopping()
        idle = self._idle.pop(function.name, [])
        fit = [one for one in idle if one.usable and one.function.revision == function.revision]
        unfit += [one for one in idle if one not in fit]
        environment = fit.pop() if fit else None
        if fit:
            self._idle[function.name] = fit
        if environment is not None:
            self._busy.add(environment)
        return environment

    def _make(self, function: Function) -> Environment:
        try:
            environment = Environment(function, self._artefacts.of(function), self._settings, self._writer)
            with self._changed:
                self._busy.add(environment)
                late = self._stopping
            if late:
                environment.close()
            environment.initialise()
            return environment
        finally:
            with self._changed:
                self._starting -= 1
                self._changed.notify_all()

    def _refuse_when_stopping(self) -> None:
        if self._stopping:
            raise LambdaFault("the laptop's Lambda service is stopping; start it again")

    def _give_back(self, environment: Environment) -> None:
        with self._changed:
            self._busy.discard(environment)
            keep = environment.usable and not self._stopping
            if keep:
                environment.idle_since = time.monotonic()
                self._idle.setdefault(environment.function.name, []).append(environment)
                self._changed.notify_all()
        if not keep:
            environment.close()

    def _reap(self) -> None:
        while expired := self._await_expired():
            _close_all(expired)

    def _await_expired(self) -> list[Environment]:
        """Wait for environments that were idle for too long; return none only at the end."""
        with self._changed:
            while not self._stopping:
                if expired := self._remove_expired(time.monotonic()):
                    return expired
                self._changed.wait(self._until_next_expiry(time.monotonic()))
            return []

    def _remove_expired(self, now: float) -> list[Environment]:
        oldest = now - self._settings.idle_seconds
        expired = [one for idle in self._idle.values() for one in idle if one.idle_since <= oldest]
        self._idle = {key: [one for one in idle if one not in expired] for key, idle in self._idle.items()}
        return expired

    def _until_next_expiry(self, now: float) -> float | None:
        """Return None if none is idle: then wait for the next one that is given back."""
        since = [one.idle_since for idle in self._idle.values() for one in idle]
        return max(min(since) + self._settings.idle_seconds - now, 0.001) if since else None


def _close_all(environments: list[Environment]) -> None:
    if environments:
        with ThreadPoolExecutor(max_workers=8) as pool:
            list(pool.map(Environment.close, environments))
