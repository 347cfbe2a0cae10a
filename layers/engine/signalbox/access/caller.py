"""Name who asks for an operation, and decide whether they may."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

from signalbox.errors import Forbidden


class Role(StrEnum):
    """Say what a caller may do: a viewer reads, an operator also changes."""

    VIEWER = "viewer"
    OPERATOR = "operator"


@dataclass(frozen=True, slots=True)
class Caller:
    """Describe who asks. A caller that is bound to a tenant meets that tenant's jobs alone."""

    name: str
    role: Role
    tenant: str | None = None

    def require(self, operation: str, role: Role, *, per_tenant: bool) -> None:
        """Refuse an operation that this caller may not ask for."""
        if role is Role.OPERATOR and self.role is Role.VIEWER:
            raise Forbidden(f"'{self.name}' is a viewer and may only read: {operation} needs the role operator")
        if self.tenant is not None and not per_tenant:
            raise Forbidden(
                f"'{self.name}' is bound to the tenant '{self.tenant}', and {operation} concerns the whole stack: "
                "ask with a token that is bound to none"
            )
