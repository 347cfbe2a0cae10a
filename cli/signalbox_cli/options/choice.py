"""Which jobs or dead letters a command is about: by their ids, or by filters over all of them, and never by nothing."""

from __future__ import annotations

from argparse import Namespace
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from signalbox_cli.errors import UsageRefused


@dataclass(frozen=True, slots=True)
class Choice:
    """How the things of one kind are chosen."""

    things: str
    one: str
    example: str  # a filter
    options: Mapping[str, str]  # each option with the name that the operations have for it
    too_wide: Collection[str]  # filters that by themselves choose nearly all

    def filters(self, args: Namespace) -> dict[str, Any]:
        """Those that were given, as the operations name them."""
        given = {wanted: getattr(args, option) for option, wanted in self.options.items()}
        return {name: value for name, value in given.items() if value is not None}

    def require(self, args: Namespace, ids: Sequence[str]) -> None:
        """Either ids or filters, and one of the two."""
        filters = self.filters(args)
        if ids and filters:
            raise UsageRefused(f"name {self.things} by their ids, or choose them by filters: not both at once")
        if not ids and not filters.keys() - self.too_wide:
            raise UsageRefused(
                f"name the ID of {self.one}, or choose some by a filter such as {self.example}; "
                f"`signalbox {args.command.name} --help` shows examples"
            )
