"""Find the first fault in chains of events: pure, event by event in the order of their chains."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any

from passports.chain.events import Event

Chain = tuple[str, str, str]  # tenant, aggregate type, aggregate
Head = tuple[int, str]  # the number of its event, and the hash in hex


@dataclass(slots=True)
class Verification:
    """Hold how far events were read, and what was found. It is JSON, so that another run can go on with it."""

    chain: Chain | None = None  # that is being read
    seq: int = 0
    hash: str | None = None
    head: Head | None = None
    is_broken: bool = False
    chains: int = 0
    events: int = 0
    first_broken: dict[str, Any] | None = None

    @staticmethod
    def of(state: Mapping[str, Any]) -> Verification:
        found = Verification(**state)
        found.chain, found.head = found.chain and tuple(found.chain), found.head and tuple(found.head)  # type: ignore[assignment]
        return found

    def as_json(self) -> dict[str, Any]:
        return asdict(self)

    def read(self, event: Event, stored_hash: bytes, head: Head | None) -> None:
        """Compare an event with the one before it in its chain."""
        chain = (str(event.tenant_id), event.aggregate_type, str(event.aggregate_id))
        if chain != self.chain:
            self.end()
            self.chain, self.seq, self.hash, self.head, self.is_broken = chain, 0, None, head, False
            self.chains += 1
        self.events += 1
        if not self.is_broken and (fault := self._fault_of(event, stored_hash)):
            self._note(*fault)
        self.seq, self.hash = event.seq, stored_hash.hex()

    def end(self) -> None:
        """Compare the head of the chain with its last event."""
        if self.chain is not None and not self.is_broken and self.head != (self.seq, self.hash):
            self._note("head", self.head[0] if self.head else self.seq)

    def read_lonely_head(self, chain: Chain, seq: int) -> None:
        """Take a head that has no events; others may be before it."""
        self.chains += 1
        found = {**_names(chain), "seq": seq, "fault": "head"}
        if self.first_broken is None or _place(found) < _place(self.first_broken):
            self.first_broken = found

    def _fault_of(self, event: Event, stored_hash: bytes) -> tuple[str, int] | None:
        if event.seq != self.seq + 1:
            return "gap", self.seq + 1
        if (event.prev_hash and event.prev_hash.hex()) != self.hash:
            return "prev_hash", event.seq
        return ("hash", event.seq) if event.hash != stored_hash else None

    def _note(self, fault: str, seq: int) -> None:
        self.is_broken = True
        if self.first_broken is None and self.chain is not None:
            self.first_broken = {**_names(self.chain), "seq": seq, "fault": fault}


def _names(chain: Chain) -> dict[str, str]:
    return dict(zip(("tenant_id", "aggregate_type", "aggregate_id"), chain, strict=True))


def _place(broken: Mapping[str, Any]) -> tuple[str, str, str]:
    return broken["tenant_id"], broken["aggregate_type"], broken["aggregate_id"]
