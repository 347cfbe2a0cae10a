"""The files that `signalbox new` writes or adds lines to. Nothing is written before all of it is known."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path
from string import Template

from signalbox_cli.errors import CommandFailed

FILES = Path(__file__).parent / "files"


def fill(text: str, **values: str) -> str:
    """Return one of our texts with its values."""
    return Template((FILES / text).read_text("utf-8")).substitute(values)


class Changes:
    """Collects new files and changed ones, and writes them at once."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self.made: dict[Path, str] = {}
        self.changed: dict[Path, str] = {}

    def add(self, path: str, text: str) -> None:
        """Add a file that must not be there yet."""
        if (self.root / path).exists():
            raise CommandFailed(f"{path} is there already: nothing was written")
        self.made[self.root / path] = text

    def insert(self, path: str, anchor: str, text: str) -> None:
        """Insert lines before each line that holds the anchor, indented as that line is."""

        def before(found: re.Match[str]) -> str:
            return "".join(f"{found[1]}{line}\n" if line else "\n" for line in text.splitlines()) + found[0]

        self.change(
            path, lambda old: re.sub(rf"^([ \t]*)\S+ {re.escape(anchor)}\n", before, old, flags=re.MULTILINE), anchor
        )

    def change(self, path: str, edit: Callable[[str], str], what: str) -> None:
        """Change a file. One in which there is no place for it is refused."""
        file = self.root / path
        old = self.changed.get(file) or self.made.get(file) or self._read(path)
        if (new := edit(old)) == old:
            raise CommandFailed(f"{path} has no place for this: a line with '{what}' is missing; nothing was written")
        (self.made if file in self.made else self.changed)[file] = new

    def _read(self, path: str) -> str:
        try:
            return (self.root / path).read_text("utf-8")
        except FileNotFoundError:
            raise CommandFailed(f"there is no {path} in {self.root}: run this at the top of a project") from None

    def write(self) -> None:
        for path, text in (self.made | self.changed).items():
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text, "utf-8")
