"""Follow the deployed event source mappings: each enabled one has a poller, a changed one a new poller."""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING

from botocore.exceptions import BotoCoreError, ClientError

from signalbox_laptop.event_sources.mapping import Mapping
from signalbox_laptop.event_sources.poller import Poller

if TYPE_CHECKING:
    from signalbox_laptop.lambda_control.activity import Activity
    from signalbox_laptop.lambda_control.clients import LambdaClients
    from signalbox_laptop.lambda_control.settings import ServiceSettings
    from signalbox_laptop.lambda_runtime.invocation import Result

_log = logging.getLogger(__name__)


class Mappings:
    """Own the pollers, and the thread that keeps them in step with ListEventSourceMappings."""

    def __init__(
        self,
        clients: LambdaClients,
        settings: ServiceSettings,
        activity: Activity,
        invoke: Callable[[str, bytes], Result],
    ) -> None:
        self._clients = clients
        self._settings = settings
        self._activity = activity
        self._invoke = invoke
        self._lock = threading.Lock()
        self._pollers: dict[str, Poller] = {}
        self._ended: list[Poller] = []
        self._asked = threading.Event()
        self._stopping = False
        self._thread = threading.Thread(target=self._run, name="mappings", daemon=True)

    def start(self) -> None:
        self._thread.start()

    def ask(self) -> None:
        """Ask for a look soon: something may have changed."""
        self._asked.set()

    def refresh(self) -> None:
        """Look now."""
        with self._lock:
            if not self._stopping:
                self._follow({mapping.uuid: mapping for mapping in self._deployed()})

    def count(self) -> int:
        return len(self._pollers)

    def waiting(self) -> bool:
        """Say whether a queue of an enabled mapping holds messages that could be taken now."""
        with self._lock:
            pollers = list(self._pollers.values())
        return any(poller.waiting() for poller in pollers)

    def stop(self) -> None:
        """Take no more messages. Batches in hand continue until their invocations end."""
        self._stopping = True
        self._asked.set()
        self._thread.join()
        with self._lock:
            self._ended += self._pollers.values()
            self._pollers = {}
        for poller in self._ended:
            poller.stop()

    def join(self) -> None:
        for poller in self._ended:
            poller.join()

    def _run(self) -> None:
        while not self._stopping:
            self._asked.clear()
            try:
                self.refresh()
            except (BotoCoreError, ClientError) as error:
                _log.warning("mappings.list_failed error=%s", error)
            self._asked.wait(self._settings.refresh_seconds)

    def _deployed(self) -> Iterator[Mapping]:
        for page in self._clients.lambda_.get_paginator("list_event_source_mappings").paginate():
            for answer in page["EventSourceMappings"]:
                mapping = Mapping.read(answer)
                if mapping is not None and mapping.enabled:
                    yield mapping

    def _follow(self, deployed: dict[str, Mapping]) -> None:
        for uuid, poller in list(self._pollers.items()):
            if deployed.get(uuid) != poller.mapping:
                poller.stop()
                self._ended.append(self._pollers.pop(uuid))
        for uuid in deployed.keys() - self._pollers.keys():
            poller = Poller(deployed[uuid], self._clients.sqs, self._settings, self._activity, self._invoke)
            self._pollers[uuid] = poller
            poller.start()
