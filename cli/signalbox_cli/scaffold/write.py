"""Writes a pack, a task or a job type: its files, and its lines in the files that name it."""

from __future__ import annotations

import re

from signalbox_cli.errors import CommandFailed
from signalbox_cli.scaffold.project import Changes, fill

NIGHTLY = "cron(30 2 * * ? *)"
_IMPORTS = {
    "pack.py": "from signalbox import Pack\nfrom {pack}.job_types import JOB_TYPES\nfrom {pack}.tasks import TASKS",
    "conftest.py": "from signalbox import Pack\nfrom {pack}.pack import PACK",
}


def write_pack(changes: Changes, pack: str) -> None:
    """Write a pack with one table, one job type that fills it and one task that empties it."""
    title, folder = _title(pack), f"layers/{pack}"
    values = {"pack": pack, "Pack": title}
    for text, path in (
        ("README.md", "README.md"),
        ("template.yaml", "template.yaml"),
        ("init.py", f"{pack}/__init__.py"),
        ("pack.py", f"{pack}/pack.py"),
        ("tasks.py", f"{pack}/tasks/__init__.py"),
        ("job_types.py", f"{pack}/job_types/__init__.py"),
        ("baseline.sql", f"{pack}/migrations/0001_baseline.sql"),
        ("conftest.py", "tests/database/conftest.py"),
        ("test_pack.py", f"tests/database/test_{pack}.py"),
    ):
        imports = _IMPORTS.get(text, "").format(pack=pack)
        changes.add(f"{folder}/{path}", fill(f"pack/{text}.txt", **values, imports=_sorted(imports)))
    changes.add(f"{folder}/{pack}/py.typed", "")
    _name_in_template(changes, values)
    _name_in_tools(changes, pack)
    write_task(changes, pack, f"clean_{pack}_notes", "delete old notes", source="pack/clean_task")
    write_job(changes, pack, f"add_{pack}_note", "write a note", source="pack/note_job", more=", transactional=True")


def write_task(changes: Changes, pack: str, name: str, summary: str, *, source: str = "") -> None:
    """Write a task with a rule that fires each night; without a source, one that does nothing yet."""
    values = {"pack": pack, "name": name, "Name": _title(name), "summary": summary, "schedule": NIGHTLY}
    values["Summary"] = summary[0].upper() + summary[1:]
    _add_module(changes, pack, "tasks", values, source or "task/task")
    changes.add(f"layers/{pack}/events/{name}.json", fill("task/event.json.txt", **values))
    changes.insert(f"layers/{pack}/{pack}/tasks/__init__.py", "signalbox new task: entry", _entry("task", values))
    changes.insert(
        f"layers/{pack}/template.yaml", "signalbox new task: rule", _outdented(fill("task/rule.yaml.txt", **values))
    )
    if not source:
        changes.add(f"layers/{pack}/tests/database/test_{name}.py", fill("task/test.py.txt", **values))


def write_job(changes: Changes, pack: str, name: str, summary: str, *, source: str = "", more: str = "") -> None:
    """Write a job type; without a source, one that does nothing yet."""
    values = {"pack": pack, "name": name, "Name": _title(name), "summary": summary, "more": more}
    _add_module(changes, pack, "job_types", values, source or "job/job")
    changes.insert(f"layers/{pack}/{pack}/job_types/__init__.py", "signalbox new job: entry", _entry("job", values))
    if not source:
        changes.add(f"layers/{pack}/tests/database/test_{name}.py", fill("job/test.py.txt", **values))


def require_pack(changes: Changes, pack: str) -> None:
    if not (changes.root / "layers" / pack / pack / "pack.py").is_file():
        raise CommandFailed(f"there is no pack '{pack}' in layers/; `signalbox new pack {pack}` makes one")


def _add_module(changes: Changes, pack: str, room: str, values: dict[str, str], source: str) -> None:
    for ending in ("py", "sql") if source.startswith("pack/") else ("py",):
        changes.add(f"layers/{pack}/{pack}/{room}/{values['name']}.{ending}", fill(f"{source}.{ending}.txt", **values))


def _sorted(imports: str) -> str:
    """Return the imports in the linter's order, which is that of the modules' names."""
    return "\n".join(sorted(imports.splitlines()))


def _entry(kind: str, values: dict[str, str]) -> str:
    return _outdented(fill(f"{kind}/entry.txt", **values))


def _outdented(text: str) -> str:
    """Return the text without the indent of its first line, which the anchor gives it again."""
    indent = len(text) - len(text.lstrip(" "))
    return "\n".join(line[indent:] for line in text.splitlines()) + "\n"


def _name_in_template(changes: Changes, values: dict[str, str]) -> None:
    for part in ("group", "parameters", "condition", "name", "stack"):
        text = _outdented(fill(f"root/{part}.txt", **values))
        changes.insert("template.yaml", f"signalbox new pack: {part}", text)
    row = fill("root/settings.txt", **values)
    changes.change(
        "docs/settings.md",
        lambda old: re.sub(r"^\| `\w+Pack` \|", lambda found: row + found[0], old, count=1, flags=re.M),
        "| `…Pack` |",
    )


def _name_in_tools(changes: Changes, pack: str) -> None:
    def pyproject(old: str) -> str:
        old = old.replace('"layers/engine", ', f'"layers/engine", "layers/{pack}", ')
        return old.replace(
            'files = ["layers/engine/signalbox", ', f'files = ["layers/engine/signalbox", "layers/{pack}/{pack}", '
        )

    def importlinter(old: str) -> str:
        old = old.replace("root_packages =\n", f"root_packages =\n    {pack}\n", 1)
        return (
            old
            if f"({pack})" in old
            else re.sub(r"^    \((\w+)\)", rf"    ({pack}) | (\1)", old, count=1, flags=re.MULTILINE)
        )

    changes.change("pyproject.toml", pyproject, '"layers/engine", ')
    changes.change(".importlinter", importlinter, "root_packages =")


def _title(name: str) -> str:
    return "".join(word.capitalize() for word in name.split("_"))
