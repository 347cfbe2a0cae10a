"""The documents name everything, show only real commands, and hold current generated parts."""

from __future__ import annotations

import re
import shlex
from pathlib import Path

import pytest

from docs import generate
from signalbox.engine_pack import registry_of
from signalbox_cli.errors import UsageRefused
from signalbox_cli.parser import CommandLine, build_parser
from tests.support.emitted import emitted
from tests.support.template import ROOT

DOCUMENTS = [
    *sorted(ROOT.glob("*.md")),
    *sorted((ROOT / "docs").rglob("*.md")),
    *sorted(ROOT.glob("layers/*/README.md")),
]
each_document = pytest.mark.parametrize("path", DOCUMENTS, ids=lambda path: str(path.relative_to(ROOT)))


@pytest.mark.parametrize("page", generate.PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_the_generated_parts_are_as_the_code_has_them(page: Path) -> None:
    assert page.read_text("utf-8") == generate.filled(page), "run `make docs`"


def test_the_documents_name_every_task() -> None:
    tasks = (ROOT / "docs" / "tasks.md").read_text("utf-8")
    assert [task.name for task in registry_of([]) if f"`{task.name}`" not in tasks] == []


def test_the_documents_name_every_setting_and_parameter() -> None:
    settings = (ROOT / "docs" / "settings.md").read_text("utf-8")
    read = re.findall(
        r'reader\.\w+\("([A-Z_]+)"', (ROOT / "layers/engine/signalbox/runtime/settings.py").read_text("utf-8")
    )
    parameters = re.findall(r"^  (\w+):", _section("Parameters"), re.MULTILINE)
    wanted = [f"SIGNALBOX_{name}" for name in read] + parameters
    assert len(wanted) > 20
    assert [name for name in wanted if f"`{name}`" not in settings] == []


def test_the_documents_name_every_metric() -> None:
    flow = (ROOT / "docs" / "flow.md").read_text("utf-8")
    code = "".join(path.read_text("utf-8") for path in ROOT.glob("layers/engine/signalbox/**/*.py"))
    metrics = {metric.name for metric in emitted() if f'"{metric.name}"' in code}
    assert {"MissedSlots", "JobsWaiting", "JobsCompleted", "DatabaseUnreachable"} <= metrics
    assert [name for name in metrics if f"`{name}`" not in flow] == []


@each_document
def test_each_signalbox_command_is_one_that_the_command_line_takes(path: Path) -> None:
    parser = build_parser()
    said = {command: _refusal(parser, shlex.split(command)[1:]) for command in _commands(path, "signalbox ")}
    assert {command: refusal for command, refusal in said.items() if refusal} == {}


@each_document
def test_each_make_target_exists(path: Path) -> None:
    targets = set(re.findall(r"^([a-z0-9-]+):", (ROOT / "Makefile").read_text("utf-8"), re.MULTILINE))
    assert {command.split()[1] for command in _commands(path, "make ")} <= targets


@each_document
def test_each_link_leads_somewhere(path: Path) -> None:
    links = re.findall(r"\]\((?!https?:)([^)#]+)[^)]*\)", path.read_text("utf-8"))
    assert [link for link in links if not (path.parent / link).exists()] == []


@each_document
def test_each_link_to_a_heading_finds_it(path: Path) -> None:
    for file, heading in re.findall(r"\]\((?!https?:)([^)#]*)#([^)]+)\)", path.read_text("utf-8")):
        target = path.parent / file if file else path
        headings = re.findall(r"^#+ (.+)$", target.read_text("utf-8"), re.MULTILINE)
        assert heading in [re.sub(r"[^\w -]", "", one).lower().replace(" ", "-") for one in headings], (
            f"{file}#{heading}"
        )


def _section(name: str) -> str:
    template = (ROOT / "template.yaml").read_text("utf-8")
    found = re.search(rf"^{name}:\n(.*?)^\w", template, re.MULTILINE | re.DOTALL)
    assert found is not None
    return found[1]


def _refusal(parser: CommandLine, words: list[str]) -> str:
    try:
        parser.parse_args(words)
    except UsageRefused as refusal:
        return str(refusal)
    except SystemExit as ended:  # once its help was printed
        return "" if ended.code == 0 else f"exit {ended.code}"
    return ""


def _commands(path: Path, start: str) -> list[str]:
    """Yield commands in console blocks, and in backticks where they are whole."""
    text = path.read_text("utf-8")
    lines = [
        line.strip()
        for block in re.findall(r"```(?:console|sh)\n(.*?)```", text, re.DOTALL)
        for line in block.splitlines()
    ]
    prompted = [line.removeprefix("$ ").removeprefix(".venv/bin/") for line in lines if line.startswith("$ ")]
    quoted = [found for found in re.findall(r"`([^`\n]+)`", text) if not set(found) & set("…[{<")]
    return [re.sub(r"\s+#.*", "", command) for command in prompted + quoted if command.startswith(start)]
