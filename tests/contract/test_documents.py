"""The walk over the documents names files, folders, tests and decisions that are there."""

from __future__ import annotations

import re
from pathlib import Path
from typing import NamedTuple

from tests.support.template import ROOT

PAGE = ROOT / "docs" / "documents.md"
CODE, LINK = re.compile(r"`([^`]+)`"), re.compile(r"\]\(([^)#]+)")


class Row(NamedTuple):
    """Hold a row, what its last cell names, and the folders that its section names."""

    text: str
    paths: list[str]  # with a test after two colons, or without
    decisions: list[str]
    folders: list[Path]

    def files(self, path: str) -> list[Path]:
        name = path.partition("::")[0]
        return [folder / name for folder in self.folders if (folder / name).exists()]


def rows() -> list[Row]:
    found = []
    for section in re.split(r"^#+ ", PAGE.read_text("utf-8"), flags=re.MULTILINE):
        lines = section.splitlines()
        folders = [ROOT, *(ROOT / name for line in lines if is_of_folders(line) for name in CODE.findall(line))]
        for line in lines:
            if line.startswith("| ") and not line.startswith(("| section |", "| --- |")):
                where = line.rstrip("| ").rpartition(" | ")[2]
                found.append(Row(line, CODE.findall(where), LINK.findall(where), folders))
    return found


def is_of_folders(line: str) -> bool:
    return line.startswith("Paths are below ")


def test_each_document_has_rows() -> None:
    found = re.split(r"^## Document ", PAGE.read_text("utf-8"), flags=re.MULTILINE)[1:]
    assert {"000", "001", "002", "003", "004"} <= {document[:3] for document in found}
    assert [document[:3] for document in found if document.count("\n| ") < 30] == []


def test_each_row_says_where() -> None:
    assert [row.text for row in rows() if not row.paths and not row.decisions] == []


def test_each_folder_of_a_section_is_there() -> None:
    assert [folder for row in rows() for folder in row.folders if not folder.is_dir()] == []


def test_each_path_is_there() -> None:
    assert [(path, row.text) for row in rows() for path in row.paths if not row.files(path)] == []


def test_each_test_stands_in_its_file() -> None:
    tests = [(row, path) for row in rows() for path in row.paths if "::" in path]
    assert len(tests) > 50
    assert [path for row, path in tests if not any(has_test(file, path) for file in row.files(path))] == []


def test_each_decision_is_there() -> None:
    decisions = [decision for row in rows() for decision in row.decisions]
    assert [one for one in decisions if not re.fullmatch(r"decisions/\d{4}-[a-z0-9-]+\.md", one)] == []
    assert [one for one in decisions if not (PAGE.parent / one).exists()] == []


def has_test(file: Path, path: str) -> bool:
    return f"def {path.partition('::')[2]}(" in file.read_text("utf-8")
